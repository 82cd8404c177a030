"""Inverting Gradients (Geiping, Bauermeister, Dröge & Moeller, NeurIPS 2020, Eq. 4), through any protocol.

For each observation, find the batch whose upload points in the same direction:

    min over x' ∈ [0, 1]^(n × shape)   1 − ⟨s, target⟩/(‖s‖·‖target‖) + τ·(mean|dx'| + mean|dy'|),   s = simulate(x', y)

over all tensors as one vector, by Adam on the sign of the gradient, the learning rate divided by ten after 3/8, 5/8 and
7/8 of the iterations, and pixels brought back to [0, 1] after every step. Local steps are unrolled by the simulator
(Section 6). Where the observation has a simulator that is easier to descend (`Observation.rough`), it is descended
until 7/8 of the iterations, and the exact one after that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from fedarena.attacks.adam import adam
from fedarena.attacks.cards.inverting_gradients import Options
from fedarena.attacks.lbfgs import Minima
from fedarena.attacks.matching import Distance, Matching, Objective, lowest
from fedarena.attacks.output_labels import output_labels, shown
from fedarena.tensors import Tensors
from fedarena.view import Observation, View

ROUGHLY = 7 / 8
"""Share of the iterations that go to the simulator that is easier to descend."""

TOGETHER = 2_000_000
"""Numbers of simulated uploads that are held at once, 8 MB: on a CPU more starts together gain nothing."""


class InvertingGradients(Matching):
    """The attack; see the module's docstring and `fedarena.attacks.cards.inverting_gradients.Options`."""

    options: Options
    name = "inverting-gradients"

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.knows_labels = options.labels == "given"

    def fit(self, input_shape: tuple[int, ...]) -> None:
        """Anything fits: rows of a table go without total variation."""

    def weight_of_variation(self, view: View) -> float:
        """τ; 0 for rows of a table, which have no neighbours."""
        return self.options.tv if len(view.input_shape) == 3 else 0.0

    def labels(self, view: View, seen: Observation, images: Tensor) -> Tensor | None:
        if self.options.labels == "given":
            assert seen.labels is not None, "the harness gives the labels to an attack that knows_labels"
            return seen.labels
        if self.options.labels == "optimized" or not shown(view, seen):
            return None
        return output_labels(view, seen, images)

    def measure(self, target: Tensors) -> Distance:
        return one_less_cosine(target)

    def at_once(self, seen: Observation) -> int:
        return max(1, TOGETHER // sum(t.numel() for t in seen.target.values()))

    def search(self, objectives: Sequence[Objective], start: Tensor) -> Minima:
        o, spent, first = self.options, 0, 1
        for i, objective in enumerate(objectives):
            last = o.iterations if i == len(objectives) - 1 else int(ROUGHLY * o.iterations)
            pixels = objective.pixels

            def project(points: Tensor, pixels: int = pixels) -> Tensor:
                points[:, :pixels].clamp_(0, 1)
                return points

            found = adam(
                objective.evaluate,
                project(start.clone()),
                o.iterations,
                o.lr,
                -torch.inf,
                first,
                last,
                signed=True,
                project=project,
            )
            spent, start, first = spent + found.evaluations, found.points, last + 1
        return replace(lowest(found), evaluations=spent)


def one_less_cosine(target: Tensors) -> Distance:
    """1 − ⟨a, target⟩/(‖a‖·‖target‖) over all tensors of the target as one vector; 1 where either is 0."""
    size = sum(_inner(t, t) for t in target.values())

    def distance(a: Tensors) -> Tensor:
        inner = sum((_inner(a[name], t) for name, t in target.items()), torch.zeros(()))
        square = sum((_inner(a[name], a[name]) for name in target), torch.zeros(()))
        return 1 - inner / (square * size).clamp_min(torch.finfo(square.dtype).tiny).sqrt()

    return distance


def _inner(a: Tensor, b: Tensor) -> Tensor:
    """⟨a, b⟩, as a product of vectors: entrywise products of large layers would take half of the attack's time."""
    return a.flatten() @ b.flatten()
