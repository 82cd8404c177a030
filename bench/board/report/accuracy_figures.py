"""Accuracy under attack by round: a figure for each problem, a panel for each defense."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedarena.board.board import Board, BoardCell, ProblemInfo
from fedarena.board.ranking import rank_defenses, worst
from fedarena.board.report.figure_style import curve_style, label, legend_below, marker_points, panels
from fedarena.board.report.report_figure import ReportFigure, as_png, file_name
from fedarena.core.text.numbers import MEASURES

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

COLUMNS = 3
LOWEST = -0.2
"""R² has no lower end; values below this one are drawn here."""
CLEAN = "without poisoning"
"""The name of the run without an attack in the legend."""

Curve = tuple[tuple[float, float], ...]


def accuracy_by_round(board: Board) -> list[ReportFigure]:
    """A figure for each problem on which poisoned runs have a curve."""
    figures = []
    for problem in board.problems:
        curves = {row.defense: _worst_curves(board, problem, row.defense) for row in rank_defenses(board)}
        poisoned = {defense: cells for defense, cells in curves.items() if cells}
        if poisoned:
            figures.append(_figure(board, problem, poisoned))
    return figures


def _worst_curves(board: Board, problem: ProblemInfo, defense: str) -> dict[str, BoardCell]:
    """Attack → the cell of the threat under which it does most harm."""
    cells = [c for c in board.cells if c.problem == problem.name and c.defense == defense and c.curve]
    curves = {}
    for attack in dict.fromkeys(c.attack for c in cells):
        lowest = worst([c for c in cells if c.attack == attack]).worst
        if lowest is not None:
            curves[attack] = lowest
    return curves


def _figure(board: Board, problem: ProblemInfo, poisoned: dict[str, dict[str, BoardCell]]) -> ReportFigure:
    from matplotlib.figure import Figure

    measure = MEASURES[problem.measure]
    clean = {run.defense: run.curve for run in board.clean_runs if run.problem == problem.name}
    cells = [c for c in board.cells if c.axis == "integrity" and c.problem == problem.name]
    numbers = {attack: i for i, attack in enumerate(dict.fromkeys(c.attack for c in cells))}
    columns = min(COLUMNS, len(poisoned))
    rows = -(-len(poisoned) // COLUMNS)
    figure = Figure(figsize=(max(6.4, 2.9 * columns), 2.4 * rows + 0.2), layout="constrained")
    handles: dict[str, Artist] = {}
    ends = []
    for axes, defense in panels(figure, list(poisoned), columns):
        handles |= _draw(axes, clean.get(defense, ()), poisoned[defense], numbers, problem)
        axes.set_title(label(defense), fontsize=9)
        ends.append(_ends(defense, clean.get(defense, ()), poisoned[defense]))
    figure.supylabel(measure, fontsize=8)
    legend_below(figure, {name: handles[name] for name in (CLEAN, *numbers) if name in handles})
    alt = f"{measure.capitalize()} by round on {problem.name}. In the end: {'; '.join(ends)}."
    name = file_name("rounds", problem.name)
    return ReportFigure(name, alt, _caption(problem, measure, min(board.seeds)), as_png(figure))


def _draw(
    axes: Axes, clean: Curve, poisoned: dict[str, BoardCell], numbers: dict[str, int], problem: ProblemInfo
) -> dict[str, Artist]:
    """One defense's curves, and their handles by name.

    Args:
        numbers: attack → number, which determines the look of its curve in all panels.
    """
    low = 0.0 if problem.measure == "accuracy" else LOWEST
    handles: dict[str, Artist] = {}

    def coordinates(curve: Curve) -> tuple[list[float], list[float]]:
        return [t for t, _ in curve], [max(low, v) for _, v in curve]

    if clean:
        (handles[CLEAN],) = axes.plot(
            *coordinates(clean), color="black", linestyle=(0, (4, 2)), linewidth=1.6, zorder=3
        )
    for attack, cell in poisoned.items():
        i = numbers[attack]
        markers = marker_points(i, len(cell.curve))
        (handles[attack],) = axes.plot(*coordinates(cell.curve), markevery=markers, **curve_style(i))
    axes.axhline(problem.chance, color="#888888", linewidth=0.7)
    axes.set_ylim(low, 1.0)
    axes.grid(alpha=0.3)
    axes.tick_params(labelsize=7, labelbottom=True)
    axes.set_xlabel("round", fontsize=8)
    return handles


def _ends(defense: str, clean: Curve, poisoned: dict[str, BoardCell]) -> str:
    """The accuracy after the last round, without an attack and under the worst one."""
    ends = {attack: cell.curve[-1][1] for attack, cell in poisoned.items()}
    lowest = min(ends, key=lambda attack: ends[attack])
    reached = f"{clean[-1][1]:.2f} without poisoning, " if clean else ""
    among = f", the lowest of {len(ends)} attacks" if len(ends) > 1 else ""
    return f"{defense} {reached}{ends[lowest]:.2f} under {lowest}{among}"


def _caption(problem: ProblemInfo, measure: str, seed: int) -> str:
    below = "" if problem.measure == "accuracy" else f", and what lies below {LOWEST} is drawn there"
    return (
        f"{measure.capitalize()} on held-out data by round on {problem.name}, least seed of each cell ({seed} where "
        "all are there), each attack as the threat that it scores lowest as. Dashed: without poisoning. Grey: what a "
        f"constant prediction reaches{below}."
    )
