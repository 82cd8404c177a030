"""Measures parts of tables, in this process or in several, and yields each one as soon as it is done."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from fedarena.core.errors import UserError, WorkerDied
from fedarena.core.text.numbers import plural
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.page.parts import MeasuredPart, PartKey
from fedarena.reproduce.progress import Progress, step
from fedarena.reproduce.tables import TABLES, table_in

Outcome = MeasuredPart | str | float | None
"""The measured part, or the reason of its failure.

If time was over, it is the number of CPU seconds that the part would have taken by its progress, or None if it was not
begun."""


LEAST = 0.01
"""The least share of progress from which the time of a whole part is extrapolated."""


class OutOfTime(BaseException):
    """Time is over. It is no `Exception`, since code that catches failures of methods would catch it as well."""


def measure(
    keys: Sequence[PartKey], machine: Machine, jobs: int, progress: Progress, *, until: float | None = None
) -> Iterator[tuple[int, Outcome]]:
    """Yield parts as they are done, each with its index among the keys. One job measures them in the order of the keys.

    Args:
        jobs: the number of processes.
        until: seconds since the epoch. At that time, parts under way are given up, and no other part is begun.
    """
    if jobs == 1 or len(keys) == 1:
        for i, key in enumerate(keys):
            yield i, _measure_one(key, TABLES[key.table], machine, until, step(progress, i, len(keys)))
    else:
        yield from _measure_in_workers(keys, machine, jobs, progress, until)


def _measure_in_workers(
    keys: Sequence[PartKey], machine: Machine, jobs: int, progress: Progress, until: float | None
) -> Iterator[tuple[int, Outcome]]:
    from fedarena.runs.executors import executor

    with executor("local", min(jobs, len(keys))) as workers:
        calls = {
            # The name of the module, since workers do not see tables that were added in this process.
            workers.submit(_measure_one, key, TABLES[key.table], machine, until, _silent): i
            for i, key in enumerate(keys)
        }
        progress(0.0, plural(len(keys), "part"))
        while calls:
            for call in workers.first_done(calls):
                i = calls.pop(call)
                outcome: Outcome
                try:
                    outcome = call.result()
                except WorkerDied:
                    outcome = "its worker process died (out of memory?)"
                progress(1 - len(calls) / len(keys), keys[i].piece)
                yield i, outcome


def _silent(share: float, text: str) -> None:
    pass


def _measure_one(key: PartKey, module: str, machine: Machine, until: float | None, progress: Progress) -> Outcome:
    from fedarena.core.errors import describe
    from fedarena.records.record_of import environment
    from fedarena.runs.executors import arithmetic

    reached = 0.0

    def report(share: float, text: str) -> None:
        nonlocal reached
        reached = max(reached, share)
        if until is not None and time.time() > until:
            raise OutOfTime
        progress(share, text)

    began = time.process_time()
    if until is not None and time.time() > until:
        return None
    try:
        report(0.0, key.piece)
        table = table_in(module)
        with arithmetic():
            rows = table.rows(key.piece, machine, key.seed, report)
    except OutOfTime:
        return (time.process_time() - began) / max(reached, LEAST)
    except Exception as error:
        return str(error) if isinstance(error, UserError) else describe(error)
    return MeasuredPart(
        key=key,
        setting=table.setting,
        rows=rows,
        cpu_seconds=time.process_time() - began,
        # A table that counts bytes or CPU time computes nothing on another device.
        environment={**environment(), "device": "cpu" if table.cpu_only else machine.device},
    )
