"""Identification: is a guess nearer to its victim than to other real images that could have been the victim?

Likeness alone says little about privacy. On small images the nearest training image is already alike (SSIM 0.9), and a
true image under faint noise, which everybody recognises, is not. So each guess g of a victim x is held against N real
images d₁, …, d_N, the decoys:

    identified(g) = ‖g − x‖² < min_i ‖g − d_i‖²

A guess that does not depend on the upload identifies its victim with a chance of 1/(N + 1), whatever it looks like,
because victim and decoys are exchangeable for its author.

Guesses at a batch of n samples x₁, …, x_n have no order, and to assign them to their victims helps them: of 128 samples
drawn by chance 13 to 16 % would be nearer to the victim that was chosen for them than to its decoys. So the j-th decoys
of all victims are a batch of their own, to which the guesses are assigned anew, by the least total squared error. With
π₀ the assignment to the victims and π_j that to the batch d₁ⱼ, …, d_nⱼ,

    identified(x_i) = ‖g_π₀(i) − x_i‖² < min_j ‖g_π_j(i) − d_ij‖²

The samples that stand in place of one victim are exchangeable, so that the chance is the same. For n = 1 it is the rule
above. If only m < n samples are guessed, n − m victims have no guess in each batch, which is farther away than any. Of
the n victims m could have been named, and a blind guess identifies n/(N + 1) of them: chance is n/m times as large.

The leak is what identification gains over chance:

    leak = (share identified − chance) / (1 − chance), at least 0

Decoys are of the victim's class, so that knowing the label alone gains nothing. They are drawn from training and
held-out samples alike, without those that the attacker owns, which it could have ruled out beforehand, and without
exact copies of the samples of the batch, which cannot be told from them. Where a class has too few, samples of other
classes fill up, and `same_class` says how many were of the class. Where fewer than half are, as with ten images of a
person, a guess that knows the label alone rules out the others: chance is then 1/(n + 1) for the n decoys of the class.
Labels that are numbers form no classes: any sample is a decoy.
"""

from __future__ import annotations

import math
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
    def compared(self) -> list[int]:
        """How many decoys of each victim count: of one with less than half of them from its class, only these do."""
        return [n if 2 * n < len(d) else len(d) for d, n in zip(self.images, self.of_class, strict=True)]

    @property
    def chance(self) -> float:
        """What a guess without an upload identifies in the mean, one sample an observation: that of 1/(N_i + 1)."""
        return fmean(1 / (size + 1) for size in self.compared) if self.images else 1.0

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
    for i, (batch, label) in enumerate((x, c) for x, y in truths for c in y):
        generator = rng.child("decoys", i).torch()
        order = torch.randperm(len(labels), generator=generator).to(labels.device)
        if classes:
            order = order[torch.argsort((labels[order] != label).long(), stable=True)]
        chosen = _distinct(batch, order, free_train, free_test, samples, n)
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


def identified_in_batches(guesses: Sequence[Tensor], truths: Sequence[Tensor], decoys: Decoys) -> Tensor:
    """Whether each victim is identified, in the order of `decoys`, [Σ n] (bool).

    Args:
        guesses: for each observation [m, *input_shape], in any order.
        truths: for each observation the victims [n, *input_shape].
    """
    results, at = [torch.empty(0, dtype=torch.bool)], 0
    for guess, x in zip(guesses, truths, strict=True):
        own = Decoys(decoys.images[at : at + len(x)], decoys.of_class[at : at + len(x)], decoys.scale)
        at += len(x)
        if len(guess) == len(x) == 1:
            results.append(identified(guess, x, own))
        elif len(x):
            results.append(_in_batch(valid(guess).cpu().flatten(1), x.double().cpu().flatten(1), own))
    return torch.cat(results)


def _in_batch(guess: Tensor, x: Tensor, decoys: Decoys) -> Tensor:
    """The same for one observation: m guesses [m, d] and n victims [n, d]."""
    own, sizes = _errors(guess, x), torch.tensor([len(d) for d in decoys.images])
    nearer = own.isfinite()
    for j in range(int(sizes.max())):
        # A victim that has fewer decoys stands in the further batches as well, where it is not compared.
        others = torch.stack([d[j % len(d)] for d in decoys.images]).double().flatten(1) / decoys.scale
        nearer &= (own < _errors(guess, others)) | (j >= sizes)
    return nearer


def _errors(guess: Tensor, x: Tensor) -> Tensor:
    """The squared error of the guess that is assigned to each sample with the least total, [n]; ∞ without one."""
    from scipy.optimize import linear_sum_assignment

    errors = torch.full((len(x),), math.inf, dtype=torch.float64)
    if len(guess):
        rows, columns = linear_sum_assignment(torch.cdist(guess, x).square().numpy())
        errors[columns] = (guess[rows] - x[columns]).square().sum(1)
    return errors


def chance_in_batches(guessed: Sequence[int], sizes: Sequence[int], decoys: Decoys) -> float:
    """What guesses without an upload identify, as a share of the victims that could have been named.

    Args:
        guessed: m of each observation. sizes: its n.
    """
    each = [1 / (size + 1) for size in decoys.compared]
    named, expected, at = 0, 0.0, 0
    for m, n in zip(guessed, sizes, strict=True):
        named += min(m, n)
        expected += sum(each[at : at + n]) * bool(m)
        at += n
    return min(1.0, expected / named) if named else 1.0


def _without(owned: Tensor, total: int, device: torch.device) -> Tensor:
    """The indices 0 … total − 1 without those that are owned."""
    free = torch.ones(total, dtype=torch.bool, device=device)
    free[owned.to(device)] = False
    return free.nonzero().flatten()


def _distinct(batch: Tensor, order: Tensor, train: Tensor, test: Tensor, samples: Samples, n: int) -> Tensor:
    """The first n places of `order` whose samples are no copies of samples of the batch."""
    chosen: list[Tensor] = []
    missing, at = n, 0
    while missing and at < len(order):
        some = order[at : at + missing]
        at += len(some)
        inputs = _stored(some, train, test, samples).double() / samples.scale
        near = torch.cdist(inputs.flatten(1), batch.double().flatten(1), compute_mode="donot_use_mm_for_euclid_dist")
        kept = some[(near.square() > SAME).all(1)]
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
