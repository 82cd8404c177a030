"""What attacks saw and what they guessed: originals over guesses, both forms side by side, a row a defense."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fedarena.board.board import Board, Cell
from fedarena.board.report.drawn import Drawn, as_png, file_name, label, plain
from fedarena.board.standing import standings, worst
from fedarena.board.words import interval
from fedarena.core.threat import FORMS, Form
from fedarena.records import pictures as gallery
from fedarena.records.pictures import Images

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
    """One form's part of a row.

    Attributes:
        cell: the threat that the attack reads most as; None where there is no cell.
        originals, guesses: where pictures were kept.
    """

    cell: Cell | None
    originals: Images | None = None
    guesses: Images | None = None

    @property
    def told(self) -> str:
        """What stands below the images, or in their place."""
        if self.cell is None:
            return "not planned"
        c = self.cell
        return f"{c.party}: score {interval(worst([c]).value)}" if c.scores else f"{c.party}: {c.status}"


def reconstructions(board: Board, folder: Path) -> list[Drawn]:
    """A figure for each problem and attack of which pictures lie in `folder`."""
    return [
        _figure(board, problem, attack, rows)
        for problem, attack in dict.fromkeys((c.problem, c.attack) for c in board.cells if c.axis == "privacy")
        if (rows := _rows(board, folder, problem, attack))
    ]


def _rows(board: Board, folder: Path, problem: str, attack: str) -> dict[str, dict[Form, Half]]:
    """Defense → form → half, in the order of ranks; empty where there is no picture at all."""
    cells = [c for c in board.cells if (c.problem, c.attack) == (problem, attack)]
    rows = {}
    for standing in standings(board):
        mine = {form: [c for c in cells if (c.defense, c.form) == (standing.defense, form)] for form in FORMS}
        if any(mine.values()):
            rows[standing.defense] = {form: _half(found, folder) for form, found in mine.items()}
    if all(half.guesses is None for row in rows.values() for half in row.values()):
        return {}
    return rows


def _half(cells: list[Cell], folder: Path) -> Half:
    found = worst([c for c in cells if c.scores]).worst or (cells[0] if cells else None)
    if found is None:
        return Half(None)
    for seed in sorted(found.keys):
        pictures = gallery.load(folder, found.keys[seed])
        if pictures is not None:
            return Half(found, *pictures)
    return Half(found)


def _figure(board: Board, problem: str, attack: str, rows: Mapping[str, Mapping[Form, Half]]) -> Drawn:
    from matplotlib.figure import Figure

    lines: list[tuple[str, dict[Form, Images | None], dict[Form, str]]] = []
    shown: dict[Form, Images | None] = {}
    for defense, halves in rows.items():
        originals = {form: half.originals for form, half in halves.items()}
        having = [o for o in originals.values() if o is not None]
        if having and any(not _same(shown.get(form), o) for form, o in originals.items() if o is not None):
            # Other rounds or clients were seen: what is below has originals of its own.
            shown = {form: o if o is not None else having[0] for form, o in originals.items()}
            lines.append(("originals", shown, dict.fromkeys(FORMS, "")))
        lines.append((defense, {f: half.guesses for f, half in halves.items()}, {f: h.told for f, h in halves.items()}))
    tall = [TALL if any(images is not None for images in row.values()) else FLAT for _, row, _ in lines]
    largest = max(i[0, 0].size for _, row, _ in lines for i in row.values() if i is not None)
    most = FEW if largest > LARGE else gallery.KEPT
    wide = max(most * STEP, WORDS)
    width, height = LEFT + 2 * wide + GAP + 0.1, sum(tall) + 0.55
    figure = Figure(figsize=(width, height))
    for k, form in enumerate(FORMS):
        left = LEFT + k * (wide + GAP)
        figure.text(left / width, 1 - 0.2 / height, f"{form} form", fontsize=9, va="center", weight="bold")
        for i, (title, images, told) in enumerate(lines):
            top = height - 0.42 - sum(tall[:i])
            middle = 0.3 if tall[i] == TALL else 0.1
            if k == 0:
                figure.text(
                    (LEFT - 0.12) / width, (top - middle) / height, label(title), ha="right", va="center", fontsize=8
                )
            drawn = images.get(form)
            if drawn is not None:
                _strip(figure, drawn[:most], left, top)
            at = top - (0.66 if drawn is not None else middle)
            figure.text(left / width, at / height, plain(told[form]), fontsize=7, va="center")
    each = "; ".join(
        f"{defense} {', '.join(f'{f} form {h.told}' for f, h in halves.items())}" for defense, halves in rows.items()
    )
    alt = (
        f"Originals on {problem} and what {attack} made of what it saw, up to {most} images a defense and "
        f"form. Privacy scores, 1 is nothing read: {each}."
    )
    caption = (
        f"{attack} on {problem}: the first images attacked of the least seed that has pictures, and what was guessed, "
        "by the party that reads most. Below each row: who attacks, and the privacy score of that cell over its seeds."
    )
    return Drawn(file_name("images", problem, attack), alt, caption, as_png(figure))


def _same(one: Images | None, other: Images | None) -> bool:
    return one is not None and other is not None and np.array_equal(one, other)


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
