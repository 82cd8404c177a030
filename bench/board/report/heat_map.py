"""Worst scores of defense × attack, as a map: attacks in paper form, and attackers who may adapt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fedarena.board.board import Arena, Board, Cell
from fedarena.board.report.drawn import Drawn, as_png, file_name, label
from fedarena.board.standing import standings, worst

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAPS = {"paper": "as the papers tried them", "adaptive": "by an attacker who may adapt"}
HATCHES = {"n/a": "////", "failed": "xxxx", "missing": "....", "diverged": "xxxx", "mixed": "xxxx"}
"""Of cells without a score, by what became of them."""
NOT_PLANNED = "–"
SHADES = "cividis"
"""Lightness rises all the way: it stays in order in grey, and for the colour-blind."""


@dataclass(frozen=True)
class Square:
    """One square.

    Attributes:
        text: the score, what became of it, or `NOT_PLANNED`.
        value: the lowest mean score over threats; None where there is none.
        partial: whether some threat beside it gave no result, so that the worst may be lower still.
    """

    text: str
    value: float | None
    partial: bool = False


def heat_maps(board: Board) -> list[Drawn]:
    """A figure a problem; none without cells."""
    return [_figure(board, arena) for arena in board.arenas if any(c.problem == arena.name for c in board.cells)]


def square(cells: Sequence[Cell]) -> Square:
    """What all threats of one attack on one defense come to; if some count in scores, those alone."""
    counted = [c for c in cells if c.counts]
    if cells and not counted:
        beside = square([replace(c, counts=True) for c in cells])
        return replace(beside, text=f"({beside.text})") if beside.value is not None else beside
    cells = counted
    statuses = {c.status for c in cells}
    found = worst([c for c in cells if c.scores])
    partial = bool(statuses - {"ok", "n/a"})
    if found.value is not None:
        return Square(f"{found.value.value:.2f}{'*' if partial else ''}", found.value.value, partial)
    for status in ("failed", "diverged", "mixed", "missing", "n/a"):  # what is least known comes first
        if status in statuses:
            return Square(status, None, partial and statuses != {status})
    return Square(NOT_PLANNED, None)


def attacks_of(board: Board, problem: str) -> dict[str, list[str]]:
    """Attacks by axis, as they first come; poisoning first."""
    return {
        axis: list(dict.fromkeys(c.attack for c in board.cells if c.problem == problem and c.axis == axis))
        for axis in ("integrity", "privacy")
    }


def squares(board: Board, problem: str, form: str) -> dict[tuple[str, str], Square]:
    """(defense, attack) → square. An attacker who adapts may still do what the paper tried."""
    forms = ("paper",) if form == "paper" else ("paper", "adaptive")
    cells = [c for c in board.cells if c.problem == problem and c.form in forms]
    names = [name for names in attacks_of(board, problem).values() for name in names]
    return {
        (defense, attack): square([c for c in cells if (c.defense, c.attack) == (defense, attack)])
        for defense in board.defenses
        for attack in names
    }


def _forms(board: Board, problem: str) -> list[str]:
    """The maps that say something of their own."""
    forms = {c.form for c in board.cells if c.problem == problem}
    return [form for form in MAPS if form in forms]


def _figure(board: Board, arena: Arena) -> Drawn:
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure

    met = {c.defense for c in board.cells if c.problem == arena.name}
    defenses = [row.defense for row in standings(board) if row.defense in met]
    axes_of = attacks_of(board, arena.name)
    names = [name for names in axes_of.values() for name in names]
    wide = len(names) > 7
    # Names stand beside the squares, and slanting above them.
    beside, above = (max(len(label(name)) for name in of) for of in (defenses, names))
    width, height = 0.62 * len(names) + 0.08 * beside + 0.9, 0.36 * len(defenses) + 0.06 * above + 1.2
    maps = [(MAPS[form], squares(board, arena.name, form)) for form in _forms(board, arena.name)]
    down, across = (len(maps), 1) if wide else (1, len(maps))
    figure = Figure(figsize=(across * max(3.2, width) + 0.9, down * height), layout="constrained")
    grid = figure.subplots(down, across, squeeze=False).flatten()
    told = []
    for axes, (title, found) in zip(grid, maps, strict=True):
        _map(axes, defenses, names, found)
        _groups(axes, axes_of)
        axes.set_title(f"Worst score against attacks\n{title}", fontsize=9)
        told.append(f"{title[0].upper()}{title[1:]}: {_told(defenses, names, found)}.")
    bar = figure.colorbar(ScalarMappable(cmap=SHADES), ax=list(grid), fraction=0.03, pad=0.02)
    bar.set_label("0 all lost, 1 withstood", fontsize=8)
    bar.ax.tick_params(labelsize=7)
    about = f"Heat map of the worst score of each defense against each attack on {arena.name}."
    caption = (
        f"Worst score over threats, mean over seeds, on {arena.name}: 1 is withstood, 0 all lost. Rows as ranked. "
        f"Hatched: no score, and the word says why; {NOT_PLANNED} not planned; * another threat of the same attack "
        "gave no result, so that the worst may be lower; in brackets: stands beside the scores and does not count."
    )
    if len(maps) < len(MAPS):
        caption += f" Every attack here was made {maps[0][0]}, so there is one map."
    return Drawn(file_name("scores", arena.name), " ".join([about, *told]), caption, as_png(figure))


def _told(defenses: Sequence[str], names: Sequence[str], found: dict[tuple[str, str], Square]) -> str:
    """Each defense's lowest squares, and how many have no score."""
    rows = []
    for defense in defenses:
        mine = {attack: found[defense, attack] for attack in names}
        scored = {attack: s.value for attack, s in mine.items() if s.value is not None}
        counts: dict[str, int] = {}
        for s in mine.values():
            if s.value is None and s.text != NOT_PLANNED:
                counts[s.text] = counts.get(s.text, 0) + 1
        parts = []
        if scored:
            attack = min(scored, key=lambda name: scored[name])
            parts.append(f"lowest {scored[attack]:.2f} ({attack})")
        parts += [f"{n} {status}" for status, n in counts.items()]
        rows.append(f"{defense} {', '.join(parts) or 'nothing planned'}")
    return "; ".join(rows)


def _map(axes: Axes, defenses: Sequence[str], names: Sequence[str], found: dict[tuple[str, str], Square]) -> None:
    import numpy as np
    from matplotlib import colormaps
    from matplotlib.patches import Rectangle

    values = np.array([[found[d, a].value for a in names] for d in defenses], dtype=float)
    axes.imshow(np.ma.masked_invalid(values), cmap=SHADES, vmin=0.0, vmax=1.0, aspect="auto")
    for y, defense in enumerate(defenses):
        for x, attack in enumerate(names):
            s = found[defense, attack]
            if s.text in HATCHES:
                hatch = HATCHES[s.text]
                axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, fc="white", ec="#bbbbbb", hatch=hatch, lw=0))
            ink = "black" if s.value is None or _luminance(colormaps[SHADES](s.value)) > 0.18 else "white"
            ground = {"facecolor": "white", "edgecolor": "none", "pad": 1.0} if s.text in HATCHES else None
            axes.text(x, y, s.text, ha="center", va="center", fontsize=7.5, color=ink, bbox=ground)
    axes.set_xticks(
        range(len(names)), [label(n) for n in names], rotation=40, ha="left", rotation_mode="anchor", fontsize=8
    )
    axes.set_yticks(range(len(defenses)), [label(d) for d in defenses], fontsize=8)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.set_xticks([x + 0.5 for x in range(len(names) - 1)], minor=True)
    axes.set_yticks([y + 0.5 for y in range(len(defenses) - 1)], minor=True)
    axes.grid(which="minor", color="white", linewidth=1.2)
    axes.tick_params(which="minor", length=0)


def _groups(axes: Axes, axes_of: dict[str, list[str]]) -> None:
    """Which attacks poison and which read, below the map."""
    start = 0
    for axis, what in (("integrity", "poisoning: integrity"), ("privacy", "inference: privacy")):
        end = start + len(axes_of[axis])
        if end > start:
            axes.text(
                (start + end - 1) / 2,
                -0.03,
                what,
                transform=axes.get_xaxis_transform(),
                ha="center",
                va="top",
                fontsize=8,
            )
            if start:
                axes.axvline(start - 0.5, color="black", linewidth=1.5)
        start = end


def _luminance(rgba: Sequence[float]) -> float:
    """Relative luminance of sRGB (WCAG 2.2): above 0.18 black ink has the greater contrast, below it white."""
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in rgba[:3]]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
