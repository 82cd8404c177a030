"""Parts of several tables that are one run: it is measured once, and the others' rows are made of it.

What is made of another table's part is never kept in a file.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module

from fedarena.reproduce import TABLES
from fedarena.reproduce.page.parts import Asked, Part
from fedarena.reproduce.same_run import Run


def elsewhere(asked: Sequence[Asked], holding: Callable[[str], Iterable[Part]]) -> dict[Asked, Part]:
    """Parts made of those of other tables that are the same run with the same seed.

    Args:
        asked: parts that are not there.
        holding: a table's parts that are there and hold.
    """
    wanted: dict[tuple[Hashable, int], list[Asked]] = {}
    for one in asked:
        run = _runs(one.table).get(one.piece)
        if run is not None:
            wanted.setdefault((run.trained, one.seed), []).append(one)
    made: dict[Asked, Part] = {}
    for table in TABLES if wanted else ():
        known = _runs(table)
        if not {trained for trained, _ in wanted} & {run.trained for run in known.values()}:
            continue
        for part in holding(table):
            run = known.get(part.asked.piece)
            for one in wanted.get((run.trained, part.asked.seed), ()) if run else ():
                if one.table != table and one not in made:
                    made[one] = _as(one, part)
    return made


def once(asked: Sequence[Asked]) -> list[Asked]:
    """The first of those that are one run."""
    first: dict[Hashable, Asked] = {}
    for one in asked:
        run = _runs(one.table).get(one.piece)
        first.setdefault(one if run is None else (run.trained, one.seed), one)
    return list(first.values())


def _as(asked: Asked, part: Part) -> Part:
    rows = [{**row, **_runs(asked.table)[asked.piece].heading} for row in part.rows]
    setting = import_module(TABLES[asked.table]).SETTING
    return replace(part, asked=asked, setting=setting, rows=rows, run_of=part.asked.name)


def _runs(table: str) -> Mapping[str, Run]:
    found: Mapping[str, Run] = getattr(import_module(TABLES[table]), "RUNS", {})
    return found
