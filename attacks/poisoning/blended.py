"""Blended: a backdoor that a faint pattern over the whole image opens (Chen, Liu, Li, Lu & Song 2017).

each sample with probability share: x ← (1 − a)·x + a·k, class := target

k is drawn uniformly from [0, 1] in every pixel, once, from `pattern`: all colluders blend in the same.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fedarena.attacks.poisoning.cards.blended import Options
from fedarena.attacks.poisoning.helpers.poisoned_samples import ImageTrigger
from fedarena.contracts.poisoning import AttackerKnowledge
from fedarena.core.rng import Rng


class Blended(ImageTrigger):
    """The attack; see the module's docstring and `fedarena.attacks.poisoning.cards.blended.Options`."""

    options: Options
    name = "blended"

    def __init__(self, options: Options, knowledge: AttackerKnowledge) -> None:
        super().__init__(options, knowledge)
        generator = Rng(options.pattern).child("blended").torch()
        self.pattern = torch.rand(knowledge.task.input_shape, generator=generator)

    def stamped(self, x: Tensor) -> Tensor:
        return (1 - self.options.blend) * x + self.options.blend * self.pattern.to(x)
