"""Analytic reconstruction: samples are read off the gradient of a dense first layer with a bias, without any search.

For one sample x every row of that layer's gradient is a multiple of x, ∂L/∂W_i = ∂L/∂b_i·xᵀ, so x = ∂L/∂W_i/∂L/∂b_i
(Phong et al. 2017, Section 3; Geiping et al. 2020, Proposition 3.1). All rows together, [∂L/∂W, ∂L/∂b], have one
direction. Their strongest right singular vector is the likeliest one under noise, and weighs rows by |∂L/∂b_i|. Behind
a protocol the ratio is affine in x, and A and c are found by playing the protocol (`helpers/first_layer.py`). Entries
that a protocol left out are filled in from rows that have them.

What A x + c leaves open is filled in by the least norm, or with `prior=population` by the distribution of the
attacker's own samples (`helpers/image_distribution.py`).

In a batch, the rows of units that are active for one sample alone show that sample (Boenisch et al. 2023). Such rows
agree with each other, and mixtures do not. The other samples are taken from single rows, as a best effort. A mixture
with weights of one sign lies between its samples, and one with both signs leaves [0, 1]. So rows are taken one after
another, each the farthest from the span of those before it (Araújo et al. 2001, successive projections).

Some observations cannot be read: an upload of no sample, which is 0, or one that holds momentum. Under `two-stage` an
upload is a(x)·((1 − β)∇f + β·g⁻). The length a(x) is unknown, so the share of g⁻ cannot be subtracted. The guess for
these is grey. If no observation can be read, the attack does not apply.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from fedarena.attacks.reconstruction.cards.analytic import Options
from fedarena.attacks.reconstruction.helpers.first_layer import (
    Affine,
    FirstLayer,
    affine,
    apart,
    first_layer,
    likely,
    strongest,
)
from fedarena.attacks.reconstruction.helpers.image_distribution import ImageDistribution, prior_of
from fedarena.attacks.reconstruction.helpers.read_each import matched_labels, read_each
from fedarena.contracts.inference import Guess, Inference, Progress, Reconstruction, Watch
from fedarena.contracts.kept_entries import without_gaps
from fedarena.contracts.observation import Observation
from fedarena.contracts.view import View
from fedarena.core.rng import Rng
from fedarena.core.threat import NotApplicable
from fedarena.problem.schedule import Schedule

OUTSIDE = 10
"""Weight of leaving [0, 1] against the distance from other samples. On gradients of dense layers and on crafted ones, 1
finds fewer samples and 30 as many; in a linear model 30 finds fewer."""
PROBES = 16
"""Rows of which samples are tried, where a random one leaves no trace."""
TINY = 1e-12
"""Squared length up to which nothing is left of a sample."""


@dataclass(frozen=True)
class Readable:
    """An observation of which the first layer shows the samples.

    Attributes:
        of: how its rows [units, s + 1] depend on a sample.
        distribution: the attacker's prior.
        ordered: the largest batch whose labels are put in order, which takes n² plays of the protocol; None: any.
    """

    view: View
    seen: Observation
    of: Affine
    distribution: ImageDistribution
    ordered: int | None = None

    def sample(self, rows: Tensor) -> Tensor:
        """The sample [d] behind rows of it alone."""
        row, variance = strongest(rows)
        return self.distribution(row, self.of, variance)

    def guess(self, groups: list[Tensor], rest: Tensor) -> Reconstruction:
        """The guess from rows of one sample each, in groups, and then from single rows as a best effort."""
        samples = [self.sample(group) for group in groups]
        n = self.seen.images
        samples += extremes(samples, [self.sample(row[None]) for row in rest], max(0, n - len(samples)))
        blind = max(0, n - len(samples))  # where all rows are used up
        samples += [samples[0].new_full(samples[0].shape, 0.5)] * blind
        like = next(iter(self.seen.target.values()))
        x = torch.stack(samples[:n]).to(like).reshape(n, *self.view.input_shape)
        labelled = matched_labels(self.view, self.seen, x, in_order=self.ordered is None or n <= self.ordered)
        return replace(labelled, blind=blind)


class Analytic(Inference):
    """The attack; see the module's docstring and `fedarena.attacks.reconstruction.cards.analytic.Options`."""

    options: Options
    name: ClassVar[str] = "analytic"
    ordered: ClassVar[int | None] = None
    """The largest batch whose labels are put in order (`Readable`)."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.needs_population = options.prior == "population"

    def watch(self, schedule: Schedule) -> Watch:
        o = self.options
        return Watch.spread(self.name, o.victims, o.start, o.window, schedule)

    def unreadable(self, seen: Observation) -> str:
        layer = first_layer(seen.target)
        return layer if isinstance(layer, str) else ""

    def run(self, view: View, rng: Rng, progress: Progress) -> Guess | NotApplicable:
        own = view.population.x if view.population is not None and self.options.prior == "population" else None
        distribution, _ = prior_of(own, torch.Size(view.input_shape).numel())

        def read(seen: Observation, i: int) -> Reconstruction | str:
            return self.reconstruct(view, seen, distribution, rng.child("analytic", i))

        return read_each(view, read, progress)

    def reconstruct(
        self, view: View, seen: Observation, distribution: ImageDistribution, rng: Rng
    ) -> Reconstruction | str:
        """The samples behind one observation, or why they cannot be read."""
        layer = first_layer(seen.target)
        if isinstance(layer, str):
            return layer
        of = affine(view, seen, layer, _probes(view, seen, layer, rng))
        if isinstance(of, str):
            return of
        _, kept = without_gaps(seen.simulate)
        rows = layer.filled(seen.target, kept) if seen.images == 1 else layer.rows(seen.target)
        if not bool(rows[:, -1].any()):
            return "the first layer's gradient is 0"
        readable = Readable(view, seen, of, distribution, self.ordered)
        return readable.guess([rows], rows[:0]) if seen.images == 1 else self.batch(readable, rows, rng.child("batch"))

    def batch(self, readable: Readable, rows: Tensor, rng: Rng) -> Reconstruction:
        """The guess from rows [units, s + 1] of several samples."""
        return readable.guess(*apart(rows, readable.seen.images))


def _probes(view: View, seen: Observation, layer: FirstLayer, rng: Rng) -> Iterator[Tensor]:
    """Samples [d] to play: a random one, and those that the layer shows, if it shows samples themselves."""
    like, d = seen.target[layer.weight], torch.Size(view.input_shape).numel()
    yield torch.rand(d, generator=rng.child("probe").torch()).to(like)
    if like.shape[1] == d:
        yield from (x.to(like) for x in likely(layer.rows(seen.target), PROBES))


def outside(x: Tensor) -> Tensor:
    """How far samples [..., d] leave [0, 1], in squares: [...]."""
    return (x - x.clamp(0, 1)).square().sum(-1)


def extremes(known: list[Tensor], possible: list[Tensor], n: int) -> list[Tensor]:
    """The n samples [d] of those that are possible which are the least likely to be mixtures; all, if they are no more.

    One after another is taken that with the largest squared distance of [x, ½√d], x clipped to [0, 1], from the span
    of those before it and of the known ones, less `OUTSIDE` times the squares by which it leaves [0, 1].
    """
    if len(possible) <= n:
        return sorted(possible, key=lambda x: float(outside(x)))
    x = torch.stack([*known, *possible])
    left = torch.cat([x.clamp(0, 1), x.new_full((len(x), 1), x.shape[1] ** 0.5 / 2)], 1)
    cost, chosen = OUTSIDE * outside(x), list(range(len(known)))
    cost[chosen] = torch.inf
    for i in range(len(known) + n):
        if i >= len(known):
            chosen.append(int((left.square().sum(1) - cost).argmax()))
            cost[chosen[-1]] = torch.inf
        direction = left[chosen[i]]
        left = left - torch.outer(left @ direction, direction / direction.square().sum().clamp_min(TINY))
    return [x[i] for i in chosen[len(known) :]]
