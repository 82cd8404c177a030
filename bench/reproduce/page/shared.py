"""Parts of several tables can be one run. It is measured once, and the rows of the other parts are derived from it.

A part that is derived from another table's part is never written to a file.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace

from fedarena.reproduce.page.parts import MeasuredPart, PartKey
from fedarena.reproduce.tables import TABLES, table_of


def elsewhere(keys: Sequence[PartKey], holding: Callable[[str], Iterable[MeasuredPart]]) -> dict[PartKey, MeasuredPart]:
    """Parts derived from other tables' parts that are the same run with the same seed.

    Args:
        keys: the missing parts.
        holding: gives the valid parts of a table.
    """
    wanted: dict[tuple[Hashable, int], list[PartKey]] = {}
    for key in keys:
        trained = _trained(key)
        if trained is not None:
            wanted.setdefault((trained, key.seed), []).append(key)
    lent: dict[PartKey, MeasuredPart] = {}
    for table in _tables_that_train({trained for trained, _ in wanted}):
        for part in holding(table):
            for key in wanted.get((_trained(part.key), part.key.seed), ()):
                if key.table != table:
                    lent.setdefault(key, _relabelled(part, key))
    return lent


def once(keys: Sequence[PartKey]) -> list[PartKey]:
    """The parts without repetitions of the same run."""
    first: dict[Hashable, PartKey] = {}
    for key in keys:
        trained = _trained(key)
        first.setdefault(key if trained is None else (trained, key.seed), key)
    return list(first.values())


def _trained(key: PartKey) -> Hashable | None:
    """What is trained for a part; None if no other table has the run."""
    run = table_of(key.table).runs.get(key.piece)
    return None if run is None else run.trained


def _tables_that_train(wanted: set[Hashable]) -> list[str]:
    """The tables that have one of these runs."""
    if not wanted:
        return []
    return [table for table in TABLES if wanted & {run.trained for run in table_of(table).runs.values()}]


def _relabelled(part: MeasuredPart, key: PartKey) -> MeasuredPart:
    table = table_of(key.table)
    rows = [{**row, **table.runs[key.piece].heading} for row in part.rows]
    return replace(part, key=key, setting=table.setting, rows=rows, run_of=part.key.name)
