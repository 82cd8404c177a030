"""The time that parts are expected to take, and the order in which to measure them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import median

from fedarena.reproduce.page.parts import PartKey


def expected(key: PartKey, times: Mapping[PartKey, float]) -> float | None:
    """The CPU seconds that a part is expected to take; None if there is no similar part.

    It is the median over the parts of the same paper whose names share most leading words with the part's name, as in
    "usps, ε = 2, RA". The same part with another seed has the whole name in common.
    """
    alike: dict[int, list[float]] = defaultdict(list)
    for other, seconds in times.items():
        if _paper(other) == _paper(key):
            alike[_common(other, key)].append(seconds)
    most = max(alike, default=0)
    return median(alike[most]) if most else None


def cheapest_first(keys: Sequence[PartKey], times: Mapping[PartKey, float]) -> list[PartKey]:
    """The parts with a known time, the shortest first, and then the others, one of each table in turn."""
    turns: dict[str, int] = defaultdict(int)
    ranks: dict[PartKey, tuple[float, int]] = {}
    for key in keys:
        known = expected(key, times)
        ranks[key] = (known, 0) if known is not None else (float("inf"), turns[key.table])
        turns[key.table] += known is None
    return sorted(keys, key=lambda key: ranks[key])


def _paper(key: PartKey) -> str:
    return key.table.partition("/")[0]


def _common(a: PartKey, b: PartKey) -> int:
    """The number of common leading words. The same name in the same table counts most."""
    if (a.table, a.piece) == (b.table, b.piece):
        return 1000
    count = 0
    for x, y in zip(a.piece.split(", "), b.piece.split(", "), strict=False):
        if x != y:
            break
        count += 1
    return count
