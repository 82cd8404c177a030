"""ROC curves of attacks that rank: a panel an attack, a curve a defense."""

from __future__ import annotations

from fedarena.board.board import Arena, Board, Cell
from fedarena.board.standing import standings, worst
from fedarena.report.drawn import Drawn, as_png, file_name, label, look

COLUMNS = 3
FINE = 0.01
"""Where rates as low as this are resolved, both axes are logarithmic: what is read at a low one counts."""


def roc_curves(board: Board) -> list[Drawn]:
    """A figure a problem on which some attack ranked."""
    return [_figure(board, arena) for arena in board.arenas if _ranked(board, arena)]


def told_of(cell: Cell) -> str:
    """ "fedavg 0.86 (server, adaptive)": the area under the whole curve, as it was judged, of the seed drawn."""
    areas = cell.metrics.get("auc")
    return f"{cell.defense}{f' {areas[min(areas)]:.2f}' if areas else ''} ({cell.threat})"


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
    rows, columns = -(-len(ranked) // COLUMNS), min(COLUMNS, len(ranked))
    figure = Figure(figsize=(max(5.0, 3.5 * columns), 3.3 * rows + 0.9), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False).flatten()
    handles, told = {}, []
    for axes in grid[len(ranked) :]:
        axes.set_axis_off()
    for axes, (attack, cells) in zip(grid, ranked.items(), strict=False):
        curves = {d: cells[d].series["roc"] for d in defenses if d in cells}
        floor = min(x for points in curves.values() for x, _ in points if x > 0)
        log = floor <= FINE
        for defense, points in curves.items():
            x = [max(p[0], floor / 2) for p in points] if log else [p[0] for p in points]
            y = [max(p[1], floor / 2) for p in points] if log else [p[1] for p in points]
            every = max(1, len(x) // 6)
            i = defenses.index(defense)
            # What is reached at one rate holds until the next: between two points nothing is promised.
            (handles[defense],) = axes.plot(x, y, drawstyle="steps-post", markevery=(i % every, every), **look(i))
        least = floor / 2 if log else 0.0
        axes.plot([least, 1.0], [least, 1.0], color="#888888", linewidth=0.8)
        axes.set(xlim=(least, 1.0), ylim=(least, 1.02))
        if log:
            axes.set(xscale="log", yscale="log")
        axes.set_title(label(attack), fontsize=9)
        axes.set_xlabel("false positive rate", fontsize=8)
        axes.set_ylabel("true positive rate", fontsize=8)
        axes.tick_params(labelsize=7)
        axes.grid(alpha=0.3)
        told.append(f"{attack}: {', '.join(told_of(cells[d]) for d in curves)}")
    figure.legend(
        [handles[d] for d in defenses],
        [label(d) for d in defenses],
        loc="outside lower center",
        ncols=min(4, len(defenses)),
        fontsize=8,
    )
    alt = f"ROC curves on {arena.name}. Area under the curve, 0.5 is chance. {'. '.join(told)}."
    caption = (
        f"ROC curves on {arena.name}, least seed of each cell, each attack as the threat that it scores lowest as; "
        "grey is chance. Logarithmic where false positive rates of 1 % and less are resolved; left edge: none is false."
    )
    return Drawn(file_name("roc", arena.name), alt, caption, as_png(figure))
