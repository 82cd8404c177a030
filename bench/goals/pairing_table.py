"""The table of a pairing of one defense and one attack, and its cells: one party under one form, over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fedarena.core.text.figures import Line, Panel, Strip
from fedarena.core.text.numbers import Mean, mean
from fedarena.records.schema import Record

NO_RESULT = "{attack} gave no result; the reasons stand below the table."
"""The verdict on a defense in whose cells nothing could be measured."""


@dataclass(frozen=True)
class CellText:
    """A cell.

    Attributes:
        lines: its lines.
        reading: the reading that they belong to, if there are several.
    """

    lines: tuple[str, ...]
    reading: str = ""


@dataclass(frozen=True)
class PairingTable:
    """A pairing as text.

    Attributes:
        title: the heading of the column of row names.
        columns: the headings of the cells.
        rows: (name, its cells).
        notes: the notes that cells refer to by number, from 1.
        sentences: further sentences below the table.
        verdict: the conclusion in one sentence.
        remarks: whatever else is concluded, a sentence each.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[CellText, ...]], ...]
    notes: tuple[str, ...]
    sentences: tuple[str, ...]
    verdict: str
    remarks: tuple[str, ...]


class Notes:
    """Notes that cells refer to by number. A note that several cells share is listed once."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def number(self, note: str) -> int:
        """The note's number, from 1. A note is one line, whoever wrote it."""
        note = " ".join(note.split())
        if note not in self.notes:
            self.notes.append(note)
        return self.notes.index(note) + 1


@dataclass(frozen=True)
class Images:
    """Rows of images."""

    title: str
    strips: Sequence[Strip]


@dataclass(frozen=True)
class Panels:
    """Rows of panels with curves."""

    title: str
    rows: Sequence[Sequence[Panel]]


@dataclass(frozen=True)
class Curves:
    """Curves over common axes with the labels `x` and `y`."""

    title: str
    lines: Sequence[Line]
    x: str
    y: str


Figure = Images | Panels | Curves


@dataclass(frozen=True)
class Cell:
    """One party under one form, over seeds.

    Attributes:
        status: ok, n/a, diverged, failed, or `mixed` when seeds disagree.
        reason: why, where it is not ok.
        reading: the reading with the largest leak, which is the one shown.
        metrics: means over the seeds that are ok.
        keys: the keys of the cell's records, for the reading shown only.
        beside: the cells of the other readings, by name.
    """

    status: str
    reason: str
    reading: str
    metrics: dict[str, Mean]
    keys: tuple[str, ...]
    beside: tuple[tuple[str, Cell], ...] = ()

    def value(self, name: str) -> float | None:
        """A metric's mean, or None."""
        return self.metrics[name].value if name in self.metrics else None


def over_seeds(records: Sequence[Record], reading: str = "", judged: int = 1) -> Cell:
    """The cell of one reading.

    Args:
        records: one a seed.
        judged: how many readings were judged. Intervals are over seeds, and hold for all readings at once.
    """
    rows = sorted(records, key=lambda r: int(r["seed"]))
    statuses = list(dict.fromkeys(r["status"] for r in rows))
    status = statuses[0] if len(statuses) == 1 else "mixed"
    names = list(dict.fromkeys(name for r in rows for name in r["metrics"]))
    values = {name: [r["metrics"][name] for r in rows if name in r["metrics"]] for name in names}
    return Cell(
        status=status,
        reason=_reason(rows, status),
        reading=reading,
        metrics={name: mean(measured, max(judged, 1)) for name, measured in values.items()},
        keys=tuple(r["key"] for r in rows),
    )


def _reason(rows: Sequence[Record], status: str) -> str:
    """The reason of all seeds, or each reason with the seeds that have it."""
    seeds: dict[str, list[str]] = {}
    for r in rows:
        if r["reason"]:
            reason = f"{r['status']}: {r['reason']}" if status == "mixed" else r["reason"]
            seeds.setdefault(reason, []).append(str(r["seed"]))
    if status != "mixed" and len(seeds) == 1 and len(next(iter(seeds.values()))) == len(rows):
        return next(iter(seeds))
    return "; ".join(f"seed {and_list(having)}: {reason}" for reason, having in seeds.items())


def and_list(words: Sequence[str]) -> str:
    """'a', 'a and b', 'a, b and c'."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
