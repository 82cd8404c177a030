"""What a cell and a clean run have in common: statuses, reasons and numbers over seeds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from fedarena.board.board import overall
from fedarena.board.planned_trial import PlannedTrial
from fedarena.records.schema import Record

DECIMALS = 6
"""Decimals of a number on a board; further ones are rounding, which differs between machines."""


def rounded(value: float) -> float:
    """The number with the decimals that a board keeps."""
    return round(float(value), DECIMALS)


def curve(points: Sequence[Sequence[float]]) -> tuple[tuple[float, float], ...]:
    """[round, accuracy] of a record, as a board keeps it."""
    return tuple((float(p[0]), rounded(p[1])) for p in points)


def status_of(trial: PlannedTrial, records: Sequence[Record]) -> str:
    """The status of one seed, given the records of it that are shown."""
    if trial.refused:
        return "n/a"
    return str(records[0]["status"]) if records else "missing"


def status_and_reason(statuses: Mapping[int, str], reasons: Mapping[int, str]) -> tuple[str, str]:
    """(status, reason) over seeds; a reason that not all seeds share names its seeds."""
    seeds_of: dict[str, list[int]] = defaultdict(list)
    for seed, reason in reasons.items():
        if reason:
            seeds_of[reason].append(seed)
    if len(seeds_of) == 1 and len(next(iter(seeds_of.values()))) == len(statuses):
        text = next(iter(seeds_of))
    else:
        text = "; ".join(f"seed {', '.join(map(str, seeds))}: {reason}" for reason, seeds in seeds_of.items())
    return overall(statuses.values()), text


def seed_list(by_seed: Mapping[int, Any]) -> str:
    """The seeds as the command line takes them: "0,1,2"."""
    return ",".join(str(seed) for seed in sorted(by_seed))


def warnings_in(records: Sequence[Record]) -> tuple[str, ...]:
    """The warnings of several records, each once."""
    return tuple(dict.fromkeys(warning for r in records for warning in r["warnings"]))
