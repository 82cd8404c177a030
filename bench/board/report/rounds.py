"""Accuracy under attack by round: a panel a defense."""

from __future__ import annotations

from fedarena.board.board import Arena, Board, Cell
from fedarena.board.report.drawn import Drawn, as_png, file_name, label, legend_below, look, marked
from fedarena.board.standing import standings, worst
from fedarena.core.text.numbers import MEASURES

COLUMNS = 3
LOWEST = -0.2
"""Of R², which has no lower end: what lies below is drawn here."""


def accuracy_by_round(board: Board) -> list[Drawn]:
    """A figure a problem on which poisoned runs have a curve."""
    return [_figure(board, arena) for arena in board.arenas if any(_curves(board, arena, d) for d in board.defenses)]


def _curves(board: Board, arena: Arena, defense: str) -> dict[str, Cell]:
    """Attack → the threat that it does most harm as."""
    mine = [c for c in board.cells if c.problem == arena.name and c.defense == defense and c.curve]
    found = {
        attack: worst([c for c in mine if c.attack == attack]).worst for attack in dict.fromkeys(c.attack for c in mine)
    }
    return {attack: c for attack, c in found.items() if c is not None}


def _figure(board: Board, arena: Arena) -> Drawn:
    from matplotlib.figure import Figure

    measure, seed = MEASURES[arena.measure], min(board.seeds)
    poisoned = {row.defense: _curves(board, arena, row.defense) for row in standings(board)}
    honest = {h.defense: h for h in board.honest if h.problem == arena.name}
    names = list(dict.fromkeys(c.attack for c in board.cells if c.axis == "integrity" and c.problem == arena.name))
    shown = [d for d in poisoned if poisoned[d]]
    rows = -(-len(shown) // COLUMNS)
    columns = min(COLUMNS, len(shown))
    figure = Figure(figsize=(max(6.4, 2.9 * columns), 2.4 * rows + 0.2), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).flatten()
    handles, told = {}, []
    low = 0.0 if arena.measure == "accuracy" else LOWEST
    for axes in grid[len(shown) :]:
        axes.set_axis_off()
    for axes, defense in zip(grid, shown, strict=False):
        clean = honest[defense].curve if defense in honest else ()
        if clean:
            at = {"color": "black", "linestyle": (0, (4, 2)), "linewidth": 1.6, "zorder": 3}
            (handles["everybody honest"],) = axes.plot([t for t, _ in clean], [max(low, v) for _, v in clean], **at)
        for attack, cell in poisoned[defense].items():
            x, y = [t for t, _ in cell.curve], [max(low, v) for _, v in cell.curve]
            i = names.index(attack)
            (handles[attack],) = axes.plot(x, y, markevery=marked(i, len(x)), **look(i))
        axes.axhline(arena.chance, color="#888888", linewidth=0.7)
        axes.set_title(label(defense), fontsize=9)
        axes.set_ylim(low, 1.0)
        axes.grid(alpha=0.3)
        axes.tick_params(labelsize=7, labelbottom=True)
        axes.set_xlabel("round", fontsize=8)
        ends = {attack: cell.curve[-1][1] for attack, cell in poisoned[defense].items()}
        least = min(ends, key=lambda attack: ends[attack])
        reached = f"{clean[-1][1]:.2f} with everybody honest, " if clean else ""
        told.append(f"{defense} {reached}{ends[least]:.2f} under {least}{_lowest(len(ends))}")
    figure.supylabel(measure, fontsize=8)
    order = [n for n in ("everybody honest", *names) if n in handles]
    legend_below(figure, {n: handles[n] for n in order})
    alt = f"{measure.capitalize()} by round on {arena.name}. In the end: {'; '.join(told)}."
    below = "" if arena.measure == "accuracy" else f", and what lies below {LOWEST} is drawn there"
    caption = (
        f"{measure.capitalize()} on held-out data by round on {arena.name}, least seed of each cell ({seed} where all "
        "are there), each attack as the threat that it scores lowest as. Dashed: everybody honest. Grey: what a "
        f"constant prediction reaches{below}."
    )
    return Drawn(file_name("rounds", arena.name), alt, caption, as_png(figure))


def _lowest(n: int) -> str:
    return f", the lowest of {n} attacks" if n > 1 else ""
