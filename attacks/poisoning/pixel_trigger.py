"""Pixel trigger: a backdoor by poisoned samples (BadNets, Gu, Dolan-Gavitt & Garg 2017), scaled up on demand.

each sample with probability share: the last size × size pixels of every channel set to 1, class := target
upload := scale · upload          (model replacement, Bagdasaryan et al. 2020, Section 4.2; 1: left as it is)
"""

from __future__ import annotations

import torch
from torch import Tensor

from fedarena.attacks.poisoning.cards.pixel_trigger import Options
from fedarena.attacks.poisoning.helpers.classes import require_classes
from fedarena.contracts.poisoning import AttackerKnowledge, Poisoning, RoundView
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, scale
from fedarena.core.threat import NotApplicable
from fedarena.problem.task import Batch


class PixelTrigger(Poisoning):
    """The attack; see the module's docstring and `fedarena.attacks.poisoning.cards.pixel_trigger.Options`."""

    options: Options
    tunes = {"scale": (1.0, 2.0, 5.0, 10.0, 20.0)}  # noqa: RUF012  (a ClassVar of the base)
    only_length = ("scale",)

    def __init__(self, options: Options, knowledge: AttackerKnowledge) -> None:
        """Raises UserError for a target that is no class, or a patch that covers the image."""
        super().__init__(options, knowledge)
        require_classes(knowledge, "pixel-trigger")
        classes, sides = knowledge.task.n_classes, knowledge.task.input_shape[1:]
        if options.target >= classes:
            raise UserError(
                f"attack pixel-trigger: option 'target' is {options.target}, allowed: 0 to {classes - 1} with "
                f"{classes} classes"
            )
        if sides and options.size >= min(sides):
            raise UserError(
                f"attack pixel-trigger: option 'size' is {options.size}, allowed: 1 to {min(sides) - 1} on images of "
                f"{'×'.join(map(str, sides))}"
            )

    def applies(self) -> NotApplicable | None:
        shape = self.knowledge.task.input_shape
        return (
            None if len(shape) == 3 else NotApplicable(f"inputs of shape {shape} are no images: no place for a patch")
        )

    def batch(self, batch: Batch, round: int, rng: Rng) -> Batch:
        """Each sample with probability `share` gets the patch and the target's label."""
        chosen = (torch.rand(batch.y.shape, generator=rng.torch()) < self.options.share).to(batch.y.device)
        x = torch.where(chosen[..., None, None, None], self.patched(batch.x), batch.x)
        return Batch(x, batch.y.masked_fill(chosen, self.options.target))

    def craft(self, view: RoundView, memory: Tensors, rng: Rng) -> tuple[Tensors, Tensors]:
        return scale(self.options.scale, view.own), memory

    def trigger(self, x: Tensor) -> tuple[Tensor, int] | None:
        return self.patched(x), self.options.target

    def patched(self, x: Tensor) -> Tensor:
        """Images [..., channels, height, width] in [0, 1] with a bright square in the last corner."""
        x = x.clone()
        x[..., -self.options.size :, -self.options.size :] = 1
        return x
