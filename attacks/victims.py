"""Which rounds attacks that reconstruct samples look at."""

from __future__ import annotations

from typing import Protocol

from fedarena.attack import Watch
from fedarena.errors import UserError
from fedarena.schedule import Schedule


class Options(Protocol):
    """What the options of such an attack have: how many victims, from which round on, in how many rounds."""

    @property
    def victims(self) -> int: ...
    @property
    def start(self) -> int: ...
    @property
    def window(self) -> int: ...


def spread(attack: str, options: Options, schedule: Schedule) -> Watch:
    """`victims` rounds spread evenly from `start` over the window; its last round is never one of them, because a
    client learns an upload from the broadcast that follows it.

    Raises:
        UserError: a start beyond the schedule.
    """
    o = options
    if o.start >= schedule.rounds:
        raise UserError(
            f"attack {attack}: option 'start' is {o.start}, allowed: at most {schedule.rounds - 1} with "
            f"{schedule.rounds} rounds"
        )
    last = min(o.start + o.window, schedule.rounds) - 1
    usable = max(1, last - o.start)
    count = min(o.victims, usable)
    return Watch(o.start, last, tuple(o.start + i * usable // count for i in range(count)))
