"""The names of readings, and the records that belong to each.

An attack may read other parts of a training than the rounds that it chose. A reading of these has the part in its name
(`fedarena.contracts.inference.Watch.elsewhere`).
"""

from __future__ import annotations

from collections.abc import Iterable

from fedarena.contracts.inference import LAST_ROUNDS, OTHER_ROUNDS
from fedarena.records.schema import Record

PARTS = (LAST_ROUNDS, OTHER_ROUNDS)


def name_in(part: str, name: str) -> str:
    """The name of a reading in a part of the training."""
    return f"{name}, {part}" if name else part


def names_of(records: Iterable[Record]) -> list[str]:
    """The readings of a threat, each once. One without a name stands for a part in which no record has one."""
    found = dict.fromkeys(record["reading"] for record in records)
    return [name for name in found if not _unnamed(name) or all(_unnamed(o) for o in found if _part(o) == _part(name))]


def belongs(record: Record, name: str) -> bool:
    """Whether a record is of a reading, or stands for all of its part (n/a, failed, diverged), so that no seed is
    lost."""
    reading = record["reading"]
    return reading == name or (_unnamed(reading) and _part(reading) == _part(name))


def _unnamed(name: str) -> bool:
    return name in ("", *PARTS)


def _part(name: str) -> str:
    """The part of the training that a reading is of; empty where the attack chose it."""
    return next((part for part in PARTS if name.endswith(part)), "")
