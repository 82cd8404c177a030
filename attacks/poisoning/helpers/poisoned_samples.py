"""A share of a batch replaced by poisoned samples, and backdoors that a pattern in an image opens."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import torch
from torch import Tensor

from fedarena.attacks.poisoning.helpers.classes import require_class, require_classes
from fedarena.contracts.poisoning import AttackerKnowledge, Poisoning
from fedarena.core.rng import Rng
from fedarena.core.threat import NotApplicable
from fedarena.problem.task import Batch


def replaced(batch: Batch, x: Tensor, target: int, share: float, rng: Rng) -> Batch:
    """Each sample, with probability `share`, replaced by the one in its place in x [steps, b, ...], of class target."""
    chosen = (torch.rand(batch.y.shape, generator=rng.torch()) < share).to(batch.y.device)
    wide = chosen.reshape(*chosen.shape, *[1] * (x.dim() - chosen.dim()))
    return Batch(torch.where(wide, x, batch.x), batch.y.masked_fill(chosen, target), batch.masks)


class ImageTrigger(Poisoning):
    """A backdoor whose trigger is a pattern in an image. A subclass has options `target` and `share`."""

    options: Any
    name: ClassVar[str]
    """The attack's name, for messages."""

    def __init__(self, options: Any, knowledge: AttackerKnowledge) -> None:
        """Raises UserError for labels that are numbers, and for a target that is no class."""
        super().__init__(options, knowledge)
        require_classes(knowledge, self.name)
        require_class(knowledge, self.name, "target", options.target)

    @abstractmethod
    def stamped(self, x: Tensor) -> Tensor:
        """Images [..., channels, height, width] in [0, 1] with the whole trigger, as new tensors."""

    def stamped_by(self, x: Tensor, client: int) -> Tensor:
        """Images with what one colluder trains on; by default the whole trigger."""
        return self.stamped(x)

    def applies(self) -> NotApplicable | None:
        shape = self.knowledge.task.input_shape
        return (
            None if len(shape) == 3 else NotApplicable(f"inputs of shape {shape} are no images: no place for a patch")
        )

    def batch(self, batch: Batch, round: int, client: int, rng: Rng) -> Batch:
        """Each sample with probability `share` gets the trigger and the target's label."""
        return replaced(batch, self.stamped_by(batch.x, client), self.options.target, self.options.share, rng)

    def trigger(self, x: Tensor) -> tuple[Tensor, int] | None:
        return self.stamped(x), self.options.target
