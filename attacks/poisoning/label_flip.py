"""Label flipping: honest training on wrong labels (Fang et al. 2020, Section 5.1; Xiang et al. 2023, Section 3.2).

    I → H − 1 − I,    H classes;    or another class at random, or one class for all

The upload is that of the protocol for the flipped batch: its noise, momentum and norm are those of an honest one.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fedarena.attacks.poisoning.cards.label_flip import Options
from fedarena.attacks.poisoning.helpers.classes import require_class, require_classes
from fedarena.contracts.poisoning import AttackerKnowledge, Poisoning
from fedarena.core.rng import Rng
from fedarena.problem.task import Batch


class LabelFlip(Poisoning):
    """The attack; see the module's docstring and `fedarena.attacks.poisoning.cards.label_flip.Options`."""

    options: Options

    def __init__(self, options: Options, knowledge: AttackerKnowledge) -> None:
        """Raises UserError where the labels are numbers, and for a target that is no class."""
        super().__init__(options, knowledge)
        require_classes(knowledge, "label-flip")
        require_class(knowledge, "label-flip", "target", options.target)

    def batch(self, batch: Batch, round: int, client: int, rng: Rng) -> Batch:
        if self.options.samples == "one":
            x, y = self.knowledge.data.draw(1, rng.child("sample"))
            batch = Batch(x[None], y[None])
        return Batch(batch.x, self.flip(batch.y, rng.child("labels")))

    def flip(self, y: Tensor, rng: Rng) -> Tensor:
        """Classes of any shape → other classes: mirrored, drawn uniformly from the others, or the target's."""
        classes = self.knowledge.task.n_classes
        if self.options.labels == "reverse":
            return classes - 1 - y
        if self.options.labels == "one":
            return torch.full_like(y, self.options.target)
        return (y + torch.randint(1, classes, y.shape, generator=rng.torch()).to(y.device)) % classes
