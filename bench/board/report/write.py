"""Writes a report: README.md, a page of cells for each goal, figures and board.json in a folder."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fedarena.board.board import Board
from fedarena.board.published import to_json
from fedarena.board.report.accuracy_figures import accuracy_by_round
from fedarena.board.report.cost_figure import cost_and_score
from fedarena.board.report.epsilon_figures import privacy_and_epsilon
from fedarena.board.report.heat_maps import heat_maps
from fedarena.board.report.page import FRONT, pages
from fedarena.board.report.reconstruction_figures import reconstructions
from fedarena.board.report.report_figure import ReportFigure
from fedarena.board.report.roc_curves import roc_curves
from fedarena.core.files import prepare_folder, write_atomically

OWN_LINK = re.compile(r"\]\((images/[a-z0-9-]+\.png|cells-[a-z-]+\.md)\)")
"""A link of the front page to a file that the report wrote."""


@dataclass(frozen=True)
class Written:
    """What was written.

    Attributes:
        readme: the front page.
        files: all files, including the front page, relative to its folder.
        removed: figures and pages of an earlier report in the same folder that this report does not have.
    """

    readme: Path
    files: tuple[str, ...]
    removed: tuple[str, ...]


def write_report(board: Board, pictures: Path, out: Path, commands: Sequence[str]) -> Written:
    """Write a report; the front page comes last, so that it never links to a file that does not exist yet.

    Args:
        pictures: the folder of the records, which may hold pictures.
        commands: the commands that make the records and the report; the last one makes the report.

    Raises:
        UserError: the folder cannot be written.
    """
    prepare_folder(out)
    figures: dict[str, list[ReportFigure]] = {
        "scores": heat_maps(board),
        "rounds": accuracy_by_round(board),
        "reconstructions": reconstructions(board, pictures),
        "roc": roc_curves(board),
        "epsilon": privacy_and_epsilon(board),
        "cost": cost_and_score(board),
    }
    figures = _with_distinct_names(figures)
    texts = pages(board, figures, commands)
    paths = [*(name for name in texts if name != FRONT), *(one.path for some in figures.values() for one in some)]
    readme = out / FRONT
    before = set(OWN_LINK.findall(readme.read_text(errors="replace"))) if readme.is_file() else set()
    for figure in (figure for some in figures.values() for figure in some):
        write_atomically(out / figure.path, figure.png)
    write_atomically(out / "board.json", to_json(board))
    for name in reversed(texts):
        write_atomically(out / name, texts[name])
    removed = sorted(path for path in before - set(paths) if (out / path).is_file())
    for path in removed:
        (out / path).unlink()
    return Written(readme, (FRONT, "board.json", *paths), tuple(removed))


def _with_distinct_names(figures: dict[str, list[ReportFigure]]) -> dict[str, list[ReportFigure]]:
    """The figures with numbers after file names that several problems or attacks share."""
    uses: Counter[str] = Counter()

    def distinct(figure: ReportFigure) -> ReportFigure:
        uses[figure.name] += 1
        return replace(figure, name=f"{figure.name}-{uses[figure.name]}") if uses[figure.name] > 1 else figure

    return {kind: [distinct(figure) for figure in some] for kind, some in figures.items()}
