"""The rounds that attacks on single uploads look at."""

from __future__ import annotations

from fedarena.contracts.inference import Watch
from fedarena.core.errors import UserError
from fedarena.problem.schedule import Schedule


def spread(attack: str, victims: int, start: int, window: int, schedule: Schedule) -> Watch:
    """`victims` rounds spread evenly from `start` over the window; its last round is never one of them, because a
    client learns an upload from the broadcast that follows it.

    Raises:
        UserError: a start beyond the schedule.
    """
    if start >= schedule.rounds:
        raise UserError(
            f"attack {attack}: option 'start' is {start}, allowed: at most {schedule.rounds - 1} with "
            f"{schedule.rounds} rounds"
        )
    last = min(start + window, schedule.rounds) - 1
    usable = max(1, last - start)
    count = min(victims, usable)
    return Watch(start, last, tuple(start + i * usable // count for i in range(count)))
