"""Measures parts of tables, in this process or in several, and hands out each as soon as it is done."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from importlib import import_module
from typing import Any

from fedarena.core.errors import UserError, WorkerDied
from fedarena.core.text.plural import plural
from fedarena.reproduce import TABLES
from fedarena.reproduce.page.parts import Asked, Part
from fedarena.reproduce.place import Where

Report = Callable[[float, str], None]
Done = tuple[int, Part | str | float | None]
"""(place among those asked, the part; or what went wrong; or where time was over how many CPU seconds it would have
taken, by its progress, None where it was not begun)."""


LEAST = 0.01
"""Share done below which progress says nothing more."""


class OutOfTime(BaseException):
    """Time is over. No `Exception`, or what looks after methods that fail would take it for a failure of theirs."""


def measure(
    asked: Sequence[Asked],
    where: Where,
    jobs: int,
    report: Report,
    *,
    until: float | None = None,
) -> Iterator[Done]:
    """Parts as they are done, with one job in the order of `asked`; what goes wrong takes the place of its part.

    Args:
        where: data files are found, and what a table trains or attacks is computed.
        jobs: processes.
        until: seconds since the epoch. Then what is under way is given up, and nothing else is begun.
    """
    if jobs == 1 or len(asked) == 1:
        for i, one in enumerate(asked):

            def tell(share: float, text: str, i: int = i) -> None:
                report((i + share) / len(asked), text)

            yield _one(i, one, TABLES[one.table], where, until, tell)
        return
    from fedarena.runs.executors import executor

    with executor("local", min(jobs, len(asked))) as place:
        calls = {place.submit(_one, i, one, TABLES[one.table], where, until, _silent): i for i, one in enumerate(asked)}
        report(0.0, plural(len(asked), "part"))
        for done, call in enumerate(as_completed(calls), 1):
            try:
                found = call.result()
            except WorkerDied:
                found = calls[call], "its worker process died (out of memory?)"
            report(done / len(asked), asked[found[0]].piece)
            yield found


def _silent(share: float, text: str) -> None:
    pass


def _one(
    place: int,
    asked: Asked,
    module: str,
    where: Where,
    until: float | None,
    tell: Report,
) -> Done:
    from fedarena.core.errors import describe
    from fedarena.records.environment import environment
    from fedarena.runs.executors import arithmetic

    reached = 0.0

    def report(share: float, text: str) -> None:
        nonlocal reached
        reached = max(reached, share)
        if until is not None and time.time() > until:
            raise OutOfTime
        tell(share, text)

    began = time.process_time()
    if until is not None and time.time() > until:
        return place, None
    try:
        report(0.0, asked.piece)
        table: Any = import_module(module)
        with arithmetic():
            rows = table.rows(asked.piece, where, asked.seed, report)
    except OutOfTime:
        return place, (time.process_time() - began) / max(reached, LEAST)
    except Exception as error:
        return place, str(error) if isinstance(error, UserError) else describe(error)
    # What counts bytes or CPU time computes nothing anywhere else.
    device = "cpu" if hasattr(table, "CPU_ALONE") else where.device
    return place, Part(asked, table.SETTING, rows, time.process_time() - began, {**environment(), "device": device})
