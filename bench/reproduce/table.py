"""A table of a paper for `bench reproduce`: its parts, how each is measured, and what the paper prints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from fedarena.records.schema import Record
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.progress import Progress, prefixed
from fedarena.reproduce.published import Published
from fedarena.reproduce.same_run import TrainedRun

Row = dict[str, Any]
"""Column → value."""
Measure = Callable[[str, Machine, int, Progress], list[Row]]
"""(piece, machine, seed, progress) → the rows of the piece with that seed."""
Compact = Callable[[Sequence[Row]], tuple[list[Row], list[str]]]
"""All rows → the rows to be printed, and notes below them."""
Draw = Callable[[Sequence[Row], Path], None]
"""Writes the picture of all rows to the path; rows then hold their seed."""

S = TypeVar("S")


@dataclass(frozen=True)
class Table:
    """A table or a figure of a paper, measured again.

    Attributes:
        setting: what all parts have in common, in one line. Parts that were measured under another one do not count.
        pieces: names of the parts, which are measured independently of each other.
        rows: measures a piece.
        measured: columns that are averaged over seeds when they are shown; where there are none, every row is shown.
        published: the paper's numbers, and the measured numbers that they are compared with.
            `fedarena.reproduce.left_out` lists the numbers that no table holds.
        compact: the form in which all rows are printed, if it is not one line for each row.
        draw: draws all rows, if the table has a picture.
        runs: piece → what is trained, where another table may have the same run.
        notes: what a reader of the rows must know of the paper's numbers, in markdown, an item each.
        cpu_only: why the table computes nothing on another device; "" if it does.
    """

    setting: str
    pieces: tuple[str, ...]
    rows: Measure
    measured: tuple[str, ...] = ()
    published: tuple[Published, ...] = ()
    compact: Compact | None = None
    draw: Draw | None = None
    runs: Mapping[str, TrainedRun] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    cpu_only: str = ""


def measured_by_name(subjects: Mapping[str, S], measure: Callable[[S, Machine, int, Progress], list[Row]]) -> Measure:
    """Gives the `rows` of a table whose pieces are the names of subjects, each of which `measure` takes."""

    def rows(piece: str, machine: Machine, seed: int, progress: Progress) -> list[Row]:
        return measure(subjects[piece], machine, seed, prefixed(progress, piece))

    return rows


def without_result(row: Row, columns: Iterable[str], record: Record) -> Row:
    """The row of a record without a result: these columns are empty, and a note has the reason."""
    return row | dict.fromkeys(columns) | {"note": f"{record['status']}: {record['reason']}"}
