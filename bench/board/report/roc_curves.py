"""ROC curves of attacks that rank candidates: a figure for each problem, a panel for each defense."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING

from fedarena.board.board import Board, BoardCell, ProblemInfo
from fedarena.board.ranking import rank_defenses, worst
from fedarena.board.report.figure_style import curve_style, label, legend_below, marker_points, panels
from fedarena.board.report.report_figure import ReportFigure, as_png, file_name
from fedarena.board.score_text import NOTHING

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

COLUMNS = 4
SIDE = 2.15
"""Inches of a panel. Each defense has a panel, since there are few attacks: the curves of all defenses under one attack
would hide one another in the corners."""
LETTERS = 24
"""Letters that fit into a panel's width."""
FINE = 0.01
"""Where false positive rates as low as this are resolved, both axes are logarithmic: success at a low rate matters."""

Ranked = dict[str, dict[str, BoardCell]]
"""Attack → defense → the cell whose curve is drawn."""


def roc_curves(board: Board) -> list[ReportFigure]:
    """A figure for each problem on which an attack ranked candidates."""
    return [_figure(board, problem, ranked) for problem in board.problems if (ranked := _ranked(board, problem))]


def curve_text(cell: BoardCell) -> str:
    """ "fedavg 0.86 (server, adaptive)": the area under the curve of the seed that is drawn."""
    area = _area(cell)
    return f"{cell.defense}{f' {area}' if area else ''} ({cell.threat})"


def _area(cell: BoardCell) -> str:
    """The judged area under the curve of the least seed; empty where there is none."""
    areas = cell.metrics.get("auc")
    return f"{areas[min(areas)]:.2f}" if areas else ""


def _ranked(board: Board, problem: ProblemInfo) -> Ranked:
    """The cell of each attack and defense with the threat that learns most."""
    cells = [c for c in board.cells if c.problem == problem.name and c.series.get("roc")]
    ranked: Ranked = {}
    for c in cells:
        lowest = worst([o for o in cells if (o.attack, o.defense) == (c.attack, c.defense)]).worst
        if lowest is not None:
            ranked.setdefault(c.attack, {})[c.defense] = lowest
    return ranked


def _figure(board: Board, problem: ProblemInfo, ranked: Ranked) -> ReportFigure:
    from matplotlib.figure import Figure

    defenses = [row.defense for row in rank_defenses(board) if any(row.defense in cells for cells in ranked.values())]
    columns = min(COLUMNS, len(defenses))
    rows = -(-len(defenses) // columns)
    figure = Figure(figsize=(max(5.0, SIDE * columns + 0.3), SIDE * rows + 0.4), layout="constrained")
    least = _least_rate(ranked)
    handles: dict[str, Artist] = {}
    drawn = []
    for axes, defense in panels(figure, defenses, columns):
        handles |= _panel(axes, defense, ranked, least)
        drawn.append(axes)
    for axes in drawn[max(0, len(drawn) - columns) :]:
        axes.tick_params(labelbottom=True)
        axes.set_xlabel("false positive rate", fontsize=8)
    figure.supylabel("true positive rate", fontsize=8)
    legend_below(figure, {attack: handles[attack] for attack in ranked})
    areas = [
        f"{attack}: {', '.join(curve_text(cells[d]) for d in defenses if d in cells)}"
        for attack, cells in ranked.items()
    ]
    alt = f"ROC curves on {problem.name}. Area under the curve, 0.5 is chance. {'. '.join(areas)}."
    caption = (
        f"ROC curves on {problem.name}, a panel a defense, least seed of each cell, each attack as the threat that it "
        "scores lowest as; grey is chance. Numbers: areas under the curves, in the order of the legend. Logarithmic "
        "where false positive rates of 1 % and less are resolved; left edge: none is false."
    )
    return ReportFigure(file_name("roc", problem.name), alt, caption, as_png(figure))


def _least_rate(ranked: Ranked) -> float:
    """The left edge of logarithmic axes; 0 where axes are linear."""
    rates = [point[0] for cells in ranked.values() for c in cells.values() for point in c.series["roc"]]
    lowest = min(rate for rate in rates if rate > 0)
    return lowest / 2 if lowest <= FINE else 0.0


def _panel(axes: Axes, defense: str, ranked: Ranked, least: float) -> dict[str, Artist]:
    """One defense's curves with their areas, and their handles by attack."""
    handles = {
        attack: _curve(axes, cells[defense].series["roc"], least, i)
        for i, (attack, cells) in enumerate(ranked.items())
        if defense in cells
    }
    _square(axes, least)
    # Right of chance and below it, where few curves pass.
    areas = fill(_areas(ranked, defense), LETTERS)
    axes.text(0.96, 0.05, areas, transform=axes.transAxes, ha="right", va="bottom", fontsize=7)
    axes.set_title(label(defense), fontsize=8)
    return handles


def _areas(ranked: Mapping[str, Mapping[str, BoardCell]], defense: str) -> str:
    return ", ".join((_area(cells[defense]) if defense in cells else "") or NOTHING for cells in ranked.values())


def _curve(axes: Axes, points: Sequence[Sequence[float]], least: float, i: int) -> Artist:
    """The i-th attack's curve; rates below `least` are drawn there."""
    x, y = ([max(p[k], least) for p in points] for k in range(2))
    # The rate that is reached at one point holds until the next: nothing is known between two points. All points lie
    # within the axes; without clipping, markers in the corners stay whole.
    markers = marker_points(i, len(x))
    (line,) = axes.plot(x, y, drawstyle="steps-post", markevery=markers, clip_on=False, **curve_style(i))
    return line


def _square(axes: Axes, least: float) -> None:
    """Chance, and the same axes on both sides: logarithmic where `least` is above 0."""
    axes.plot([least, 1.0], [least, 1.0], color="#888888", linewidth=0.8)
    axes.set(xlim=(least, 1.0), ylim=(least, 1.02))
    if least:
        axes.set(xscale="log", yscale="log")
    axes.tick_params(labelsize=7)
    axes.grid(alpha=0.3)
