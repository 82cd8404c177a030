"""What a goal gives to be printed of a pairing of one defense and one attack, as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fedarena.core.text.figures import Line, Panel, Strip


@dataclass(frozen=True)
class CellText:
    """A cell.

    Attributes:
        lines: its lines.
        reading: the reading that they are of, where there are several ways to read what was seen.
    """

    lines: tuple[str, ...]
    reading: str = ""


@dataclass(frozen=True)
class PairingTable:
    """A pairing as text.

    Attributes:
        title: what stands above the names of the rows.
        columns: what stands above the cells.
        rows: (name, its cells).
        notes: what cells refer to by number, from 1.
        sentences: what else there is to say.
        verdict: what it comes to.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[CellText, ...]], ...]
    notes: tuple[str, ...]
    sentences: tuple[str, ...]
    verdict: str


class Notes:
    """Notes that cells refer to by number; one that several cells have is listed once."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def number(self, note: str) -> int:
        """The note's number, from 1."""
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
    """Curves over common axes, which are called `x` and `y`."""

    title: str
    lines: Sequence[Line]
    x: str
    y: str


Figure = Images | Panels | Curves
