"""A board → README.md, its figures and board.json in a folder."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fedarena.board.board import Board
from fedarena.board.published import to_json
from fedarena.board.report.costs import cost_and_score, privacy_and_epsilon
from fedarena.board.report.drawn import Drawn
from fedarena.board.report.heat_map import heat_maps
from fedarena.board.report.page import page
from fedarena.board.report.reconstructions import reconstructions
from fedarena.board.report.roc_curves import roc_curves
from fedarena.board.report.rounds import accuracy_by_round
from fedarena.core.files import prepare_folder, write_atomically

NAMED = re.compile(r"\]\((images/[a-z0-9-]+\.png)\)")
"""Figures of a page."""


@dataclass(frozen=True)
class Written:
    """What was written.

    Attributes:
        readme: the page.
        files: all files, the page among them, relative to its folder.
        removed: figures of an earlier report in the same folder that this one does not have.
    """

    readme: Path
    files: tuple[str, ...]
    removed: tuple[str, ...]


def write_report(board: Board, pictures: Path, out: Path, commands: Sequence[str]) -> Written:
    """Write a report; the page last, so that it never names a figure that is not there yet.

    Args:
        pictures: the folder of the records, in which pictures may lie.
        commands: how records and report are made; the last makes the report.

    Raises:
        UserError: the folder cannot be written.
    """
    prepare_folder(out)
    figures: dict[str, list[Drawn]] = {
        "scores": heat_maps(board),
        "rounds": accuracy_by_round(board),
        "reconstructions": reconstructions(board, pictures),
        "roc": roc_curves(board),
        "epsilon": privacy_and_epsilon(board),
        "cost": cost_and_score(board),
    }
    figures = _apart(figures)
    drawn = [figure for found in figures.values() for figure in found]
    readme = out / "README.md"
    before = set(NAMED.findall(readme.read_text(errors="replace"))) if readme.is_file() else set()
    for figure in drawn:
        write_atomically(out / figure.path, figure.png)
    write_atomically(out / "board.json", to_json(board))
    write_atomically(readme, page(board, figures, commands))
    removed = sorted(path for path in before - {f.path for f in drawn} if (out / path).is_file())
    for path in removed:
        (out / path).unlink()
    return Written(readme, ("README.md", "board.json", *(f.path for f in drawn)), tuple(removed))


def _apart(figures: dict[str, list[Drawn]]) -> dict[str, list[Drawn]]:
    """With numbers behind names that problems or attacks share once they are file names."""
    taken: dict[str, int] = {}

    def own(figure: Drawn) -> Drawn:
        taken[figure.name] = taken.get(figure.name, 0) + 1
        return replace(figure, name=f"{figure.name}-{taken[figure.name]}") if taken[figure.name] > 1 else figure

    return {kind: [own(figure) for figure in found] for kind, found in figures.items()}
