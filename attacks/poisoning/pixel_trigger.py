"""Pixel trigger: a backdoor by poisoned samples (BadNets, Gu, Dolan-Gavitt & Garg 2017), scaled up on demand.

each sample with probability share: the last size × size pixels of every channel set to 1, class := target
upload := scale · upload          (model replacement, Bagdasaryan et al. 2020, Section 4.2; 1: left as it is)
"""

from __future__ import annotations

from torch import Tensor

from fedarena.attacks.poisoning.cards.pixel_trigger import Options
from fedarena.attacks.poisoning.helpers.poisoned_samples import ImageTrigger
from fedarena.contracts.poisoning import AttackerKnowledge, RoundView
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, scale


class PixelTrigger(ImageTrigger):
    """The attack; see the module's docstring and `fedarena.attacks.poisoning.cards.pixel_trigger.Options`."""

    options: Options
    name = "pixel-trigger"
    tunes = {"scale": (1.0, 2.0, 5.0, 10.0, 20.0)}  # noqa: RUF012  (a ClassVar of the base)
    only_length = ("scale",)

    def __init__(self, options: Options, knowledge: AttackerKnowledge) -> None:
        """Raises UserError for a target that is no class, or a patch that covers the image."""
        super().__init__(options, knowledge)
        sides = knowledge.task.input_shape[1:]
        if sides and options.size >= min(sides):
            raise UserError(
                f"attack pixel-trigger: option 'size' is {options.size}, allowed: 1 to {min(sides) - 1} on images of "
                f"{'×'.join(map(str, sides))}"
            )

    def craft(self, view: RoundView, memory: Tensors, rng: Rng) -> tuple[Tensors, Tensors]:
        return scale(self.options.scale, view.own), memory

    def stamped(self, x: Tensor) -> Tensor:
        """A bright square in the last corner."""
        x = x.clone()
        x[..., -self.options.size :, -self.options.size :] = 1
        return x
