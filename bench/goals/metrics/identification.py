"""Identification: is a guess nearer to its victim than to other real images that could have been the victim?

Likeness alone says little about privacy. On small images the nearest training image is already alike (SSIM 0.9), and a
true image under faint noise, which everybody recognises, is not. So each guess g of a victim x is held against N real
images d₁, …, d_N, the decoys:

    identified(g) = ‖g − x‖² < min_i ‖g − d_i‖²

A guess that does not depend on the upload identifies its victim with a chance of 1/(N + 1), whatever it looks like,
because victim and decoys are exchangeable for its author. The leak is what identification gains over that:

    leak = (share identified − 1/(N + 1)) / (1 − 1/(N + 1)), at least 0

Decoys are of the victim's class, so that knowing the label alone gains nothing. They are drawn from training and
held-out samples alike, without those that the attacker owns, which it could have ruled out beforehand, and without
exact copies of the victim, which cannot be told from it. Where a class has too few, samples of other classes fill up,
and `same_class` says how many were of the class. Where fewer than half are, as with ten images of a person, a guess
that knows the label alone rules out the others: chance is then 1/(n + 1) for the n decoys of the class. Labels that are
numbers form no classes: any sample is a decoy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from statistics import fmean

import torch
from torch import Tensor

from fedarena.core.rng import Rng
from fedarena.goals.metrics.image_similarity import valid
from fedarena.goals.metrics.real_samples import Samples

DECOYS = 99
"""N: chance is 1 %."""

Truth = tuple[Tensor, Tensor]
"""The samples behind one observation: inputs [n, *input_shape] in [0, 1], classes [n] (int64) or numbers [n]."""

SAME = 1e-6
"""Squared distance up to which two inputs are copies of each other: rounding of stored values in single precision."""


@dataclass(frozen=True)
class Decoys:
    """The decoys of all victims of a reading, in the victims' order.

    Attributes:
        images: for each victim [N_i, *input_shape] as stored; N_i < `DECOYS` only where the data have no more samples.
        of_class: how many of them are of the victim's class; all of them where labels are numbers.
        scale: the stored value that means 1.0.
    """

    images: tuple[Tensor, ...]
    of_class: tuple[int, ...]
    scale: float

    def chosen(self, victims: Tensor) -> Decoys:
        """Those of some victims, given as a mask."""
        mask = victims.tolist()
        return Decoys(tuple(compress(self.images, mask)), tuple(compress(self.of_class, mask)), self.scale)

    @property
    def chance(self) -> float:
        """What a guess without an upload identifies in the mean: that of 1/(N_i + 1).

        Of a victim with less than half of its decoys from its class, only these count.
        """
        sizes = (n if 2 * n < len(d) else len(d) for d, n in zip(self.images, self.of_class, strict=True))
        return fmean(1 / (size + 1) for size in sizes) if self.images else 1.0

    @property
    def mean_size(self) -> float:
        """The mean of N_i."""
        return fmean(len(d) for d in self.images) if self.images else 0.0

    @property
    def same_class(self) -> float:
        """The share of all decoys that are of their victim's class."""
        return sum(self.of_class) / max(1, sum(map(len, self.images)))


@dataclass(frozen=True)
class Owned:
    """Indices of the samples that the attacker holds itself.

    Attributes:
        train, test: of training and of held-out samples (int64).
    """

    train: Tensor
    test: Tensor


def draw_decoys(truths: Sequence[Truth], samples: Samples, owned: Owned, rng: Rng, n: int = DECOYS) -> Decoys:
    """Draw n decoys for each victim without replacement, of its class first.

    Args:
        truths: the victims, for each observation.
    """
    free_train = _without(owned.train, len(samples.y), samples.y.device)
    free_test = _without(owned.test, len(samples.y_test), samples.y_test.device)
    labels = torch.cat([samples.y[free_train], samples.y_test[free_test]])
    classes = not labels.is_floating_point()
    images, same = [], []
    for i, (victim, label) in enumerate((v, c) for x, y in truths for v, c in zip(x, y, strict=True)):
        generator = rng.child("decoys", i).torch()
        order = torch.randperm(len(labels), generator=generator).to(labels.device)
        if classes:
            order = order[torch.argsort((labels[order] != label).long(), stable=True)]
        chosen = _distinct(victim, order, free_train, free_test, samples, n)
        same.append(int((labels[chosen] == label).sum()) if classes else len(chosen))
        images.append(_stored(chosen, free_train, free_test, samples).cpu())
    return Decoys(tuple(images), tuple(same), samples.scale)


def identified(guesses: Tensor, originals: Tensor, decoys: Decoys) -> Tensor:
    """Whether each guess identifies its victim, [n] (bool). A tie with a decoy does not.

    Args:
        guesses: [n, *input_shape]; clipped to [0, 1] first, as for every metric.
        originals: the victims, in the same order as `decoys`.

    Raises:
        ValueError: other numbers of guesses, victims and decoys.
    """
    if not len(guesses) == len(originals) == len(decoys.images):
        raise ValueError(f"{len(guesses)} guesses of {len(originals)} victims with {len(decoys.images)} sets of decoys")
    results = []
    for guess, original, others in zip(valid(guesses).cpu(), originals.double().cpu(), decoys.images, strict=True):
        own = (guess - original).square().sum()
        nearest = (others.double() / decoys.scale - guess).square().flatten(1).sum(1)
        results.append(bool((own < nearest).all()))
    return torch.tensor(results, dtype=torch.bool)


def _without(owned: Tensor, total: int, device: torch.device) -> Tensor:
    """The indices 0 … total − 1 without those that are owned."""
    free = torch.ones(total, dtype=torch.bool, device=device)
    free[owned.to(device)] = False
    return free.nonzero().flatten()


def _distinct(victim: Tensor, order: Tensor, train: Tensor, test: Tensor, samples: Samples, n: int) -> Tensor:
    """The first n places of `order` whose samples are no copies of the victim."""
    chosen: list[Tensor] = []
    missing, at = n, 0
    while missing and at < len(order):
        some = order[at : at + missing]
        at += len(some)
        inputs = _stored(some, train, test, samples).double() / samples.scale
        kept = some[(inputs - victim.double()).square().flatten(1).sum(1) > SAME]
        chosen.append(kept)
        missing -= len(kept)
    return torch.cat(chosen) if chosen else order[:0]


def _stored(places: Tensor, train: Tensor, test: Tensor, samples: Samples) -> Tensor:
    """The inputs at places in the free training samples followed by the free held-out ones."""
    if not len(places):
        return samples.x[:0]
    of_train = places < len(train)
    inputs = samples.x.new_empty((len(places), *samples.x.shape[1:]))
    inputs[of_train] = samples.x[train[places[of_train]]]
    inputs[~of_train] = samples.x_test[test[places[~of_train] - len(train)]]
    return inputs
