"""What attacks reconstructed: originals above guesses, both forms side by side, a row for each defense."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fedarena.board.board import Board, BoardCell
from fedarena.board.ranking import rank_defenses, worst
from fedarena.board.report.figure_style import label, plain
from fedarena.board.report.report_figure import ReportFigure, as_png, file_name
from fedarena.board.score_text import interval
from fedarena.core.threat import FORMS, Form
from fedarena.records import store
from fedarena.records.store import Images

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEFT, STEP, GAP, TALL, FLAT = 1.9, 0.62, 0.35, 0.82, 0.3
"""Inches: room for titles, from image to image, between forms, from row to row, and from a row without pictures."""

LARGE = 32 * 32
"""Of images with more pixels only `FEW` are shown in a row."""
FEW = 3
WORDS = 2.3
"""Inches: room for the longest words below images, "eavesdropper: score 0.08 (0.00 to 0.35)"."""


@dataclass(frozen=True)
class Half:
    """One form's half of a defense's row.

    Attributes:
        cell: the cell of the threat that recovers most; None where there is no cell.
        originals, guesses: where pictures were kept.
    """

    cell: BoardCell | None
    originals: Images | None = None
    guesses: Images | None = None

    @property
    def text(self) -> str:
        """What stands below the images, or in their place."""
        if self.cell is None:
            return "not planned"
        c = self.cell
        return f"{c.party}: score {interval(worst([c]).value)}" if c.scores else f"{c.party}: {c.status}"


Halves = Mapping[str, Mapping[Form, Half]]
"""Defense → form → half of its row."""


@dataclass(frozen=True)
class Line:
    """A line of images across both forms.

    Attributes:
        title: "originals", or the defense.
        images: by form; None where there are none.
        texts: what stands below the images, by form.
    """

    title: str
    images: Mapping[Form, Images | None]
    texts: Mapping[Form, str]

    @property
    def height(self) -> float:
        """In inches."""
        return TALL if any(images is not None for images in self.images.values()) else FLAT


def reconstructions(board: Board, folder: Path) -> list[ReportFigure]:
    """A figure for each problem and attack with pictures in `folder`."""
    return [
        _figure(problem, attack, rows)
        for problem, attack in dict.fromkeys((c.problem, c.attack) for c in board.cells if c.axis == "privacy")
        if (rows := _rows(board, folder, problem, attack))
    ]


def _rows(board: Board, folder: Path, problem: str, attack: str) -> Halves:
    """The rows in the order of ranks; empty where there is no picture at all."""
    cells = [c for c in board.cells if (c.problem, c.attack) == (problem, attack)]
    rows = {}
    for row in rank_defenses(board):
        by_form = {form: [c for c in cells if (c.defense, c.form) == (row.defense, form)] for form in FORMS}
        if any(by_form.values()):
            rows[row.defense] = {form: _half(some, folder) for form, some in by_form.items()}
    if all(half.guesses is None for halves in rows.values() for half in halves.values()):
        return {}
    return rows


def _half(cells: list[BoardCell], folder: Path) -> Half:
    shown = worst([c for c in cells if c.scores]).worst or (cells[0] if cells else None)
    if shown is None:
        return Half(None)
    for seed in sorted(shown.keys):
        pictures = store.load_pictures(folder, shown.keys[seed])
        if pictures is not None:
            return Half(shown, *pictures)
    return Half(shown)


def _lines(rows: Halves) -> list[Line]:
    """The lines from top to bottom: originals stand above the first row that they belong to."""
    lines: list[Line] = []
    shown: dict[Form, Images | None] = {}
    for defense, halves in rows.items():
        originals = {form: half.originals for form, half in halves.items()}
        present = [images for images in originals.values() if images is not None]
        if present and any(not _same(shown.get(form), o) for form, o in originals.items() if o is not None):
            # The attack saw other rounds or clients than in the rows above.
            shown = {form: o if o is not None else present[0] for form, o in originals.items()}
            lines.append(Line("originals", shown, dict.fromkeys(FORMS, "")))
        guesses = {form: half.guesses for form, half in halves.items()}
        lines.append(Line(defense, guesses, {form: half.text for form, half in halves.items()}))
    return lines


def _same(one: Images | None, other: Images | None) -> bool:
    return one is not None and other is not None and np.array_equal(one, other)


def _figure(problem: str, attack: str, rows: Halves) -> ReportFigure:
    from matplotlib.figure import Figure

    lines = _lines(rows)
    largest = max(images[0, 0].size for line in lines for images in line.images.values() if images is not None)
    most = FEW if largest > LARGE else store.MOST_PICTURES
    wide = max(most * STEP, WORDS)
    width, height = LEFT + 2 * wide + GAP + 0.1, sum(line.height for line in lines) + 0.55
    figure = Figure(figsize=(width, height))
    for k, form in enumerate(FORMS):
        left = LEFT + k * (wide + GAP)
        figure.text(left / width, 1 - 0.2 / height, f"{form} form", fontsize=9, va="center", weight="bold")
        top = height - 0.42
        for line in lines:
            if k == 0:
                _title(figure, line, top)
            _images_and_text(figure, line, form, most, left, top)
            top -= line.height
    scores = "; ".join(
        f"{defense} {', '.join(f'{form} form {half.text}' for form, half in halves.items())}"
        for defense, halves in rows.items()
    )
    alt = (
        f"Originals on {problem} and what {attack} made of what it saw, up to {most} images a defense and "
        f"form. Privacy scores, 1 is nothing read: {scores}."
    )
    caption = (
        f"{attack} on {problem}: the first images attacked of the least seed that has pictures, and what was guessed, "
        "by the party that reads most. Below each row: who attacks, and the privacy score of that cell over its seeds."
    )
    return ReportFigure(file_name("images", problem, attack), alt, caption, as_png(figure))


def _middle(line: Line) -> float:
    """Inches from the top of a line to the middle of its images, or of its text where it has none."""
    return 0.3 if line.height == TALL else 0.1


def _title(figure: Figure, line: Line, top: float) -> None:
    width, height = figure.get_size_inches()
    x, y = (LEFT - 0.12) / width, (top - _middle(line)) / height
    figure.text(x, y, label(line.title), ha="right", va="center", fontsize=8)


def _images_and_text(figure: Figure, line: Line, form: Form, most: int, left: float, top: float) -> None:
    """One form's images of a line, with the text below them or in their place."""
    width, height = figure.get_size_inches()
    images = line.images.get(form)
    if images is not None:
        _strip(figure, images[:most], left, top)
    y = top - (0.66 if images is not None else _middle(line))
    figure.text(left / width, y / height, plain(line.texts[form]), fontsize=7, va="center")


def _strip(figure: Figure, images: Images, left: float, top: float) -> None:
    width, height = figure.get_size_inches()
    side = STEP - 0.04
    for i, image in enumerate(images):
        axes = figure.add_axes(((left + STEP * i) / width, (top - side) / height, side / width, side / height))
        picture = image.transpose(1, 2, 0)
        grey = picture.shape[-1] == 1
        axes.imshow(picture[..., 0] if grey else picture, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
        axes.set(xticks=[], yticks=[])
        for edge in axes.spines.values():
            edge.set(color="#999999", linewidth=0.5)
