"""Heat maps of worst scores, defense × attack: for attacks in paper form, and for attackers who may adapt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fedarena.board.board import Board, ProblemInfo
from fedarena.board.ranking import rank_defenses
from fedarena.board.report.figure_style import label
from fedarena.board.report.report_figure import ReportFigure, as_png, file_name
from fedarena.board.report.score_squares import NOT_PLANNED, Square, attacks_by_axis, squares

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAPS = {"paper": "as the papers tried them", "adaptive": "by an attacker who may adapt"}
HATCHES = {"n/a": "////", "failed": "xxxx", "missing": "....", "diverged": "xxxx", "mixed": "xxxx"}
"""The hatching of squares without a score, by status."""
SHADES = "cividis"
"""Lightness rises all the way: colours keep their order in grey, and for the colour-blind."""

Squares = dict[tuple[str, str], Square]


def heat_maps(board: Board) -> list[ReportFigure]:
    """A figure for each problem with cells."""
    return [
        _figure(board, problem) for problem in board.problems if any(c.problem == problem.name for c in board.cells)
    ]


def _figure(board: Board, problem: ProblemInfo) -> ReportFigure:
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure

    cells = [c for c in board.cells if c.problem == problem.name]
    present = {c.defense for c in cells}
    defenses = [row.defense for row in rank_defenses(board) if row.defense in present]
    by_axis = attacks_by_axis(board, problem.name)
    attacks = [name for names in by_axis.values() for name in names]
    forms = {c.form for c in cells}
    maps = {title: squares(board, problem.name, form) for form, title in MAPS.items() if form in forms}
    # Wide maps stand below one another.
    down, across = (len(maps), 1) if len(attacks) > 7 else (1, len(maps))
    width, height = _size(defenses, attacks)
    figure = Figure(figsize=(across * max(3.2, width) + 0.9, down * height), layout="constrained")
    grid = figure.subplots(down, across, squeeze=False).flatten()
    for axes, (title, scores) in zip(grid, maps.items(), strict=True):
        _map(axes, defenses, attacks, scores)
        _axis_names(axes, by_axis)
        axes.set_title(f"Worst score against attacks\n{title}", fontsize=9)
    bar = figure.colorbar(ScalarMappable(cmap=SHADES), ax=list(grid), fraction=0.03, pad=0.02)
    bar.set_label("0 all lost, 1 withstood", fontsize=8)
    bar.ax.tick_params(labelsize=7)
    about = f"Heat map of the worst score of each defense against each attack on {problem.name}."
    texts = [
        f"{title[0].upper()}{title[1:]}: {_lowest(defenses, attacks, squares)}." for title, squares in maps.items()
    ]
    alt = " ".join([about, *texts])
    return ReportFigure(file_name("scores", problem.name), alt, _caption(problem, list(maps)), as_png(figure))


def _size(defenses: Sequence[str], attacks: Sequence[str]) -> tuple[float, float]:
    """Inches of a map with the names of defenses beside the squares and the names of attacks above them."""
    beside, above = (max(len(label(name)) for name in names) for names in (defenses, attacks))
    return 0.62 * len(attacks) + 0.08 * beside + 0.9, 0.36 * len(defenses) + 0.06 * above + 1.2


def _caption(problem: ProblemInfo, titles: Sequence[str]) -> str:
    caption = (
        f"Worst score over threats, mean over seeds, on {problem.name}: 1 is withstood, 0 all lost. Rows as ranked. "
        f"Hatched: no score, and the word says why; {NOT_PLANNED} not planned; * another threat of the same attack "
        "gave no result, so that the worst may be lower; in brackets: stands beside the scores and does not count."
    )
    if len(titles) < len(MAPS):
        caption += f" Every attack here was made {titles[0]}, so there is one map."
    return caption


def _lowest(defenses: Sequence[str], attacks: Sequence[str], squares: Squares) -> str:
    """Each defense's lowest score, and how many squares have no score."""
    return "; ".join(f"{defense} {_lowest_of([(a, squares[defense, a]) for a in attacks])}" for defense in defenses)


def _lowest_of(row: Sequence[tuple[str, Square]]) -> str:
    scores = {attack: s.value for attack, s in row if s.value is not None}
    statuses = Counter(s.text for _, s in row if s.value is None and s.text != NOT_PLANNED)
    parts = []
    if scores:
        attack = min(scores, key=lambda name: scores[name])
        parts.append(f"lowest {scores[attack]:.2f} ({attack})")
    parts += [f"{n} {status}" for status, n in statuses.items()]
    return ", ".join(parts) or "nothing planned"


def _map(axes: Axes, defenses: Sequence[str], attacks: Sequence[str], squares: Squares) -> None:
    import numpy as np

    values = np.array([[squares[d, a].value for a in attacks] for d in defenses], dtype=float)
    axes.imshow(np.ma.masked_invalid(values), cmap=SHADES, vmin=0.0, vmax=1.0, aspect="auto")
    for y, defense in enumerate(defenses):
        for x, attack in enumerate(attacks):
            _square(axes, x, y, squares[defense, attack])
    names = [label(name) for name in attacks]
    axes.set_xticks(range(len(attacks)), names, rotation=40, ha="left", rotation_mode="anchor", fontsize=8)
    axes.set_yticks(range(len(defenses)), [label(d) for d in defenses], fontsize=8)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.set_xticks([x + 0.5 for x in range(len(attacks) - 1)], minor=True)
    axes.set_yticks([y + 0.5 for y in range(len(defenses) - 1)], minor=True)
    axes.grid(which="minor", color="white", linewidth=1.2)
    axes.tick_params(which="minor", length=0)


def _square(axes: Axes, x: int, y: int, square: Square) -> None:
    """The text of a square, and its hatching where it has no score."""
    from matplotlib import colormaps
    from matplotlib.patches import Rectangle

    hatch = HATCHES.get(square.text)
    if hatch is not None:
        axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, fc="white", ec="#bbbbbb", hatch=hatch, lw=0))
    black = square.value is None or _luminance(colormaps[SHADES](square.value)) > 0.18
    text_box = {"facecolor": "white", "edgecolor": "none", "pad": 1.0} if hatch is not None else None
    ink = "black" if black else "white"
    axes.text(x, y, square.text, ha="center", va="center", fontsize=7.5, color=ink, bbox=text_box)


def _axis_names(axes: Axes, by_axis: dict[str, list[str]]) -> None:
    """Which attacks are poisoning and which are inference, below the map."""
    start = 0
    for axis, title in (("integrity", "poisoning: integrity"), ("privacy", "inference: privacy")):
        end = start + len(by_axis[axis])
        if end > start:
            below, centre = axes.get_xaxis_transform(), (start + end - 1) / 2
            axes.text(centre, -0.03, title, transform=below, ha="center", va="top", fontsize=8)
            if start:
                axes.axvline(start - 0.5, color="black", linewidth=1.5)
        start = end


def _luminance(rgba: Sequence[float]) -> float:
    """Relative luminance of sRGB (WCAG 2.2): above 0.18 black ink has the greater contrast, below it white."""
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in rgba[:3]]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
