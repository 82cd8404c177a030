"""TAG (Deng et al. 2021, Eq. 5): texts whose gradient is near what was seen, by squares and by absolute values.

    min over z [n, length, words]   Σ_l (‖s_l − target_l‖² + α_l·‖s_l − target_l‖₁) / Σ_l ‖target_l‖²,
                                    s = simulate(softmax z, y)

The softmax is over words, so that every place holds positive weights of words with sum 1. At the end the word with the
largest weight is the guess. The tensors l are in the order of the model. α_l falls evenly from α at the first one to
α/L at the last of L. Adam descends from z ~ N(0, 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from fedarena.attacks.reconstruction.cards.tag import Options
from fedarena.attacks.reconstruction.helpers.adam import adam, cosine
from fedarena.attacks.reconstruction.helpers.lbfgs import Minima
from fedarena.attacks.reconstruction.helpers.matching import Distance, Matching, MatchingObjective, lowest
from fedarena.attacks.reconstruction.helpers.output_labels import fixed_labels
from fedarena.contracts.observation import Observation
from fedarena.contracts.view import View
from fedarena.core.errors import UserError
from fedarena.core.tensors import Tensors
from fedarena.problem.task import Task


@dataclass(frozen=True)
class WordWeights:
    """x = softmax z over words."""

    def images(self, z: Tensor) -> Tensor:
        """[n, length, words] → the same."""
        return z.softmax(-1)


class Tag(Matching):
    """The attack; see the module's docstring and `fedarena.attacks.reconstruction.cards.tag.Options`."""

    options: Options
    name = "tag"

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.needs_labels = options.labels == "given"

    def fit(self, task: Task) -> None:
        """Refuse what is no text. Raises UserError."""
        if len(task.input_shape) != 2:
            raise UserError(f"attack tag takes texts [length, words], inputs have the shape {task.input_shape}")

    def coordinates(self, view: View) -> WordWeights:
        return WordWeights()

    def labels(self, view: View, seen: Observation, images: Tensor) -> Tensor | None:
        return fixed_labels(self.options.labels, view, seen, images)

    def measure(self, target: Tensors) -> Distance:
        return squared_and_absolute(target, self.options.alpha)

    def at_once(self, seen: Observation) -> int:
        return 1

    def search(self, objectives: Sequence[MatchingObjective], start: Tensor) -> Minima:
        o = self.options
        return lowest(adam(objectives[-1].evaluate, start, o.iterations, o.lr, -torch.inf, decay=cosine))

    def longest(self, stages: int) -> int:
        return self.options.iterations * self.options.restarts


def squared_and_absolute(target: Tensors, alpha: float) -> Distance:
    """Σ_l (‖a_l − target_l‖² + α_l·‖a_l − target_l‖₁) / Σ_l ‖target_l‖², α_l = α·(1 − (l − 1)/L); absolute where the
    target is 0."""
    size = sum(float(t.square().sum()) for t in target.values()) or 1.0
    weights = {name: alpha * (1 - i / len(target)) for i, name in enumerate(target)}

    def distance(a: Tensors) -> Tensor:
        off = {name: a[name] - t for name, t in target.items()}
        parts = [d.square().sum() + weights[name] * d.abs().sum() for name, d in off.items()]
        return torch.stack(parts).sum() / size

    return distance
