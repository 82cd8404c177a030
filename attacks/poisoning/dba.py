"""DBA: a trigger of four parts, of which each colluder trains on some, and which is tested whole (Xie et al. 2020).

A part is a bright bar of `length` × 1 pixels. The four stand in two rows and two columns from the first corner on,
`gap` pixels apart. The i-th colluder trains on part i mod 4; where there are only f < 4 colluders, on the parts p with
p mod f = i.
"""

from __future__ import annotations

from torch import Tensor

from fedarena.attacks.poisoning.cards.dba import Options
from fedarena.attacks.poisoning.helpers.poisoned_samples import ImageTrigger
from fedarena.contracts.poisoning import AttackerKnowledge
from fedarena.core.errors import UserError

PARTS = 4
NARROW, SHORTEST = 7, 2
"""By default a bar is 1/7 of the width (the authors' 4 of MNIST's 28 pixels), but 2 pixels at least."""


class DBA(ImageTrigger):
    """The attack; see the module's docstring and `fedarena.attacks.poisoning.cards.dba.Options`."""

    options: Options
    name = "dba"

    def __init__(self, options: Options, knowledge: AttackerKnowledge) -> None:
        """Raises UserError for a target that is no class, or a trigger that is larger than the image."""
        super().__init__(options, knowledge)
        sides = knowledge.task.input_shape[1:]
        width = sides[-1] if sides else 1
        self.length = max(SHORTEST, width // NARROW) if options.length is None else options.length
        self.gap = self.length // 2 if options.gap is None else options.gap
        height, across = 2 + self.gap, 2 * self.length + self.gap
        if len(sides) == 2 and (height > sides[0] or across > sides[1]):
            raise UserError(
                f"attack dba: options 'length' and 'gap' are {self.length} and {self.gap}, which gives a trigger of "
                f"{height}×{across} pixels, allowed: at most {sides[0]}×{sides[1]}, the size of the images"
            )

    def stamped(self, x: Tensor) -> Tensor:
        return self._with(x, range(PARTS))

    def stamped_by(self, x: Tensor, client: int) -> Tensor:
        return self._with(x, self.parts_of(client))

    def parts_of(self, client: int) -> range:
        """The parts that a colluder trains on."""
        members = self.knowledge.members
        turns = min(PARTS, max(1, len(members)))
        return range(members.index(client) % turns if client in members else 0, PARTS, turns)

    def _with(self, x: Tensor, parts: range) -> Tensor:
        x = x.clone()
        for part in parts:
            row, column = part // 2 * (1 + self.gap), part % 2 * (self.length + self.gap)
            x[..., row, column : column + self.length] = 1
        return x
