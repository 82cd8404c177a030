"""Inverting Gradients (Geiping, Bauermeister, Dröge & Moeller, NeurIPS 2020, Eq. 4), through any protocol.

For each observation, find the batch whose upload points in the same direction:

    min over x' ∈ [0, 1]^(n × shape)   1 − ⟨s, target⟩/(‖s‖·‖target‖) + τ·(mean|dx'| + mean|dy'|),   s = simulate(x', y)

over all tensors as one vector, by Adam on the sign of the gradient, the learning rate divided by ten after 3/8, 5/8 and
7/8 of the iterations, and pixels brought back to [0, 1] after every step. Local steps are unrolled by the simulator
(Section 6). Where the observation has a simulator that is easier to descend (`Observation.rough`), it is descended
until 7/8 of the iterations, and the exact one after that.

Where a client sent the statistics of batch normalisation beside its upload, their distance R_BN joins it with a weight
α (Yin et al., CVPR 2021), in the adaptive form:

    + α·Σ_l (‖μ_l(x') − μ_l‖ + ‖σ²_l(x') − σ²_l‖)

Two things stand between a small distance and the image, and each has an option:

    kinks    A network of ReLUs and max pooling has a gradient that jumps in the image. With `kinks` they are rounded
             off, less and less (`helpers/nonsmooth.py`). The original network decides which start is best.
    polish   A smooth network's gradient reacts to some directions in the image a thousand times less than to others,
             and steps along signs never settle in these. `polish` continues by L-BFGS with

    ½·‖s/‖s‖ − target/‖target‖‖² + τ/1000·(mean|dx'| + mean|dy'|),

which is the same distance without the cancellation that leaves 1 − cos with no digit below 1e-7.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from fedarena.attacks.reconstruction.cards.inverting_gradients import Options
from fedarena.attacks.reconstruction.helpers.adam import adam, cosine, steps
from fedarena.attacks.reconstruction.helpers.batch_statistics import distance_from
from fedarena.attacks.reconstruction.helpers.lbfgs import Evaluate, Minima, minimise
from fedarena.attacks.reconstruction.helpers.least_squares import CORNER, HISTORY
from fedarena.attacks.reconstruction.helpers.matching import Distance, Matching, MatchingObjective, lowest
from fedarena.attacks.reconstruction.helpers.nonsmooth import Rounded, has_kinks
from fedarena.attacks.reconstruction.helpers.output_labels import fixed_labels
from fedarena.contracts.observation import Observation
from fedarena.contracts.view import View
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.problem.task import Task

ROUGHLY = 7 / 8
"""Share of the iterations for the simulator that is easier to minimise."""

SHARPER = 0.01
"""The share of the width that is left at the end, within which kinks are rounded off."""

FAINT = 1e-3
"""The share of τ for L-BFGS: by then the observation determines almost everything, and a prior would only distort."""

TOGETHER = 2_000_000
"""The most numbers of simulated uploads that are held at once, 8 MB: on a CPU more starts together gain nothing."""


class InvertingGradients(Matching):
    """The attack; see the module's docstring and its card's `Options`."""

    options: Options
    name = "inverting-gradients"

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.needs_labels = options.labels == "given"

    def fit(self, task: Task) -> None:
        """Refuse `tv` for rows of a table, `colours` without three channels, and `kinks` without anything to round off.

        Raises UserError. Without these options any model fits.
        """
        o, shape = self.options, task.input_shape
        if o.colours and (len(shape) != 3 or shape[0] != 3):
            raise UserError(
                f"attack {self.name}: option 'colours' is True, allowed: False for inputs of shape {shape}, which are "
                "not in three colours"
            )
        if len(shape) != 3 and o.tv not in (0, Options.tv):
            raise UserError(
                f"attack {self.name}: option 'tv' is {o.tv:g}, allowed: 0 for inputs of shape {shape}, which are no "
                "images"
            )
        if o.kinks and not has_kinks(task, o.kinks):
            raise UserError(
                f"attack {self.name}: option 'kinks' is {o.kinks:g}, allowed: 0 for a model without ReLU and max "
                "pooling, in which there is nothing to round off"
            )

    def weight_of_variation(self, view: View) -> float:
        """τ; 0 for rows of a table, which have no neighbours."""
        return self.options.tv if len(view.input_shape) == 3 else 0.0

    def labels(self, view: View, seen: Observation, images: Tensor) -> Tensor | None:
        return fixed_labels(self.options.labels, view, seen, images)

    def measure(self, target: Tensors) -> Distance:
        return one_less_cosine(target)

    def further(self, seen: Observation, shape: tuple[int, ...], rng: Rng) -> Callable[[Tensor], Tensor] | None:
        weight = self.options.statistics
        if seen.statistics is None or not weight:
            return None
        distance = distance_from(seen.statistics)
        return lambda x: weight * distance(x)

    def at_once(self, seen: Observation) -> int:
        return max(1, TOGETHER // sum(t.numel() for t in seen.target.values()))

    def search(self, objectives: Sequence[MatchingObjective], start: Tensor) -> Minima:
        o, spent, first = self.options, 0, 1
        for i, objective in enumerate(objectives):
            last = o.iterations if i == len(objectives) - 1 else int(ROUGHLY * o.iterations)
            pixels = objective.pixels

            def project(points: Tensor, pixels: int = pixels) -> Tensor:
                points[:, :pixels].clamp_(0, 1)
                return points

            evaluate = replace(objective, colours=o.colours).evaluate
            minima = adam(
                self.rounded(evaluate, first) if o.kinks else evaluate,
                project(start.clone()),
                o.iterations,
                o.lr,
                -torch.inf,
                first,
                last,
                signed=True,
                project=project,
                decay=cosine if o.decay == "cosine" else steps,
                changing=o.kinks > 0,
            )
            spent, start, first = spent + minima.evaluations, minima.points, last + 1
        if o.kinks:
            minima = replace(minima, values=evaluate(minima.points)[0])
            spent += len(minima.points)
        if o.polish:
            last_one = replace(objectives[-1], colours=o.colours, measure=between_directions)
            last_one = replace(last_one, tv=FAINT * last_one.tv, corner=CORNER)
            minima = minimise(last_one.evaluate, minima.points, o.polish, HISTORY)
            spent += minima.evaluations
        return replace(lowest(minima), evaluations=spent)

    def longest(self, stages: int) -> int:
        o = self.options
        return o.iterations + (o.kinks > 0) + (o.polish + 1 if o.polish else 0)

    def rounded(self, evaluate: Evaluate, first: int) -> Evaluate:
        """`evaluate` with kinks rounded off within a width that falls by a constant factor in every iteration."""
        o, i = self.options, first

        def rounder(points: Tensor) -> tuple[Tensor, Tensor]:
            nonlocal i
            width, i = o.kinks * SHARPER ** (i / o.iterations), i + 1
            with Rounded(width) as rounding:
                costs = evaluate(points)
            if not rounding.met:  # the model has kinks, but the protocol's simulator does not use the model
                raise UserError(
                    f"attack {self.name}: option 'kinks' is {o.kinks:g}, allowed: 0 where uploads are simulated "
                    "without ReLU and max pooling"
                )
            return costs

        return rounder


def one_less_cosine(target: Tensors) -> Distance:
    """1 − ⟨a, target⟩/(‖a‖·‖target‖) over all tensors of the target as one vector; 1 where either is 0.

    The target is scaled to length one beforehand, and ‖a‖ is computed alone: a product of squares would underflow in
    single precision if gradients have lengths of 1e-10, as behind saturated units.
    """
    size = _length(target)
    unit = {name: t / size for name, t in target.items()}

    def distance(a: Tensors) -> Tensor:
        inner = sum((_inner(a[name], t) for name, t in unit.items()), torch.zeros(()))
        return 1 - inner / _length({name: a[name] for name in unit})

    return distance


def between_directions(target: Tensors) -> Distance:
    """½·‖a/‖a‖ − target/‖target‖‖², which equals `one_less_cosine` without cancellation; ½ if one of them is 0."""
    size = _length(target)

    def distance(a: Tensors) -> Tensor:
        length = _length({name: a[name] for name in target})
        parts = [(a[name] / length - t / size).square().sum() for name, t in target.items()]
        return sum(parts, torch.zeros(())) / 2

    return distance


def _length(tensors: Tensors) -> Tensor:
    square = sum((_inner(t, t) for t in tensors.values()), torch.zeros(()))
    return square.clamp_min(torch.finfo(square.dtype).tiny).sqrt()


def _inner(a: Tensor, b: Tensor) -> Tensor:
    """⟨a, b⟩, as a product of vectors: entrywise products of large layers would take half of the attack's time."""
    return a.flatten() @ b.flatten()
