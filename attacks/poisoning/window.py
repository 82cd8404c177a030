"""Window: another attack from one round to another; before and after, the colluders follow the protocol.

it acts in the rounds t with  start·T ≤ t < end·T
"""

from __future__ import annotations

import math

from fedarena.attacks.poisoning.cards.window import Options
from fedarena.contracts.poisoning import Around, AttackerKnowledge, Poisoning, RoundView
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.problem.task import Batch


class Window(Around):
    """The attack; see the module's docstring and `fedarena.attacks.poisoning.cards.window.Options`.

    Attributes:
        first: the first round in which it acts. after: the first round in which it no longer does.
    """

    options: Options

    def __init__(self, options: Options, knowledge: AttackerKnowledge, inner: Poisoning) -> None:
        """Raises UserError for a window that ends before it begins, or that no round of the run is in."""
        super().__init__(options, knowledge, inner)
        schedule = knowledge.task.schedule
        if options.start >= options.end:
            raise UserError(
                f"attack window: option 'start' is {options.start:g}, allowed: less than option 'end', which is "
                f"{options.end:g}"
            )
        self.first, self.after = (math.ceil(schedule.at(share)) for share in (options.start, options.end))
        if self.first >= self.after:
            raise UserError(
                f"attack window: options 'start' and 'end' are {options.start:g} and {options.end:g}, which no round "
                f"of {schedule.rounds} is between, allowed: a wider window"
            )

    def acts(self, round: int) -> bool:
        """Whether the colluders attack in this round."""
        return self.first <= round < self.after

    def begins_after(self, first: int) -> int:
        return self.inner.begins_after(max(first, self.first))

    @property
    def ends(self) -> int | None:
        inside = self.inner.ends
        own = None if self.after >= self.knowledge.task.schedule.rounds else self.after
        return own if inside is None else inside if own is None else min(own, inside)

    def culminates(self, round: int) -> bool:
        return self.acts(round) and (round + 1 == self.after or self.inner.culminates(round))

    def batch(self, batch: Batch, round: int, client: int, rng: Rng) -> Batch:
        return self.inner.batch(batch, round, client, rng) if self.acts(round) else batch

    def craft(self, view: RoundView, memory: Tensors, rng: Rng) -> tuple[Tensors, Tensors]:
        return self.inner.craft(view, memory, rng) if self.acts(view.round) else (view.own, memory)
