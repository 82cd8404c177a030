"""ROC curves of attacks that rank: a panel a defense, a curve an attack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING

from fedarena.board.board import Arena, Board, Cell
from fedarena.board.report.drawn import Drawn, as_png, file_name, label, legend_below, look, marked
from fedarena.board.standing import standings, worst
from fedarena.board.words import NOTHING

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

COLUMNS = 4
SIDE = 2.15
"""Inches of a panel. A panel a defense, because attacks are few: of one attack, curves of all defenses would hide one
another in the corners."""
LETTERS = 24
"""That fit into a panel's width."""
FINE = 0.01
"""Where rates as low as this are resolved, both axes are logarithmic: what is read at a low one counts."""


def roc_curves(board: Board) -> list[Drawn]:
    """A figure a problem on which some attack ranked."""
    return [_figure(board, arena) for arena in board.arenas if _ranked(board, arena)]


def told_of(cell: Cell) -> str:
    """ "fedavg 0.86 (server, adaptive)": the area under the whole curve, as it was judged, of the seed drawn."""
    area = _area(cell)
    return f"{cell.defense}{f' {area}' if area else ''} ({cell.threat})"


def _area(cell: Cell) -> str:
    areas = cell.metrics.get("auc")
    return f"{areas[min(areas)]:.2f}" if areas else ""


def _areas(ranked: Mapping[str, Mapping[str, Cell]], defense: str) -> str:
    return ", ".join((_area(cells[defense]) if defense in cells else "") or NOTHING for cells in ranked.values())


def _ranked(board: Board, arena: Arena) -> dict[str, dict[str, Cell]]:
    """Attack → defense → the threat that it reads most as."""
    having = [c for c in board.cells if c.problem == arena.name and c.series.get("roc")]
    found: dict[str, dict[str, Cell]] = {}
    for c in having:
        same = [o for o in having if (o.attack, o.defense) == (c.attack, c.defense)]
        lowest = worst(same).worst
        if lowest is not None:
            found.setdefault(c.attack, {})[c.defense] = lowest
    return found


def _figure(board: Board, arena: Arena) -> Drawn:
    from matplotlib.figure import Figure

    ranked = _ranked(board, arena)
    defenses = [row.defense for row in standings(board) if any(row.defense in cells for cells in ranked.values())]
    rates = [p[0] for cells in ranked.values() for c in cells.values() for p in c.series["roc"]]
    floor = min(rate for rate in rates if rate > 0)
    least = floor / 2 if floor <= FINE else 0.0
    columns = min(COLUMNS, len(defenses))
    rows = -(-len(defenses) // columns)
    figure = Figure(figsize=(max(5.0, SIDE * columns + 0.3), SIDE * rows + 0.4), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).flatten()
    handles: dict[str, Artist] = {}
    for axes, defense in zip(grid, defenses, strict=False):
        for i, (attack, cells) in enumerate(ranked.items()):
            if defense in cells:
                handles[attack] = _curve(axes, cells[defense].series["roc"], least, i)
        _square(axes, least)
        # Right of chance and below it: few curves come there.
        areas = fill(_areas(ranked, defense), LETTERS)
        axes.text(0.96, 0.05, areas, transform=axes.transAxes, ha="right", va="bottom", fontsize=7)
        axes.set_title(label(defense), fontsize=8)
    for axes in grid[len(defenses) :]:
        axes.set_axis_off()
    for axes in grid[max(0, len(defenses) - columns) : len(defenses)]:
        axes.tick_params(labelbottom=True)
        axes.set_xlabel("false positive rate", fontsize=8)
    figure.supylabel("true positive rate", fontsize=8)
    legend_below(figure, {attack: handles[attack] for attack in ranked})
    told = [
        f"{attack}: {', '.join(told_of(cells[d]) for d in defenses if d in cells)}" for attack, cells in ranked.items()
    ]
    alt = f"ROC curves on {arena.name}. Area under the curve, 0.5 is chance. {'. '.join(told)}."
    caption = (
        f"ROC curves on {arena.name}, a panel a defense, least seed of each cell, each attack as the threat that it "
        "scores lowest as; grey is chance. Numbers: areas under the curves, in the order of the legend. Logarithmic "
        "where false positive rates of 1 % and less are resolved; left edge: none is false."
    )
    return Drawn(file_name("roc", arena.name), alt, caption, as_png(figure))


def _curve(axes: Axes, points: Sequence[Sequence[float]], least: float, i: int) -> Artist:
    """The i-th attack's curve; what lies below `least` is drawn there."""
    x, y = ([max(p[k], least) for p in points] for k in range(2))
    # What is reached at one rate holds until the next: between two points nothing is promised. All lies within the
    # axes; not to clip leaves markers in the corners whole.
    (line,) = axes.plot(x, y, drawstyle="steps-post", markevery=marked(i, len(x)), clip_on=False, **look(i))
    return line


def _square(axes: Axes, least: float) -> None:
    """Chance, and the same axes on both sides: logarithmic where `least` is above 0."""
    axes.plot([least, 1.0], [least, 1.0], color="#888888", linewidth=0.8)
    axes.set(xlim=(least, 1.0), ylim=(least, 1.02))
    if least:
        axes.set(xscale="log", yscale="log")
    axes.tick_params(labelsize=7)
    axes.grid(alpha=0.3)
