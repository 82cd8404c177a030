"""Figures: rows of images, curves, and panels of curves, drawn without pyplot and its global state."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from torch import Tensor

from fedarena.core.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def save_png(figure: Figure, path: Path) -> None:
    """Write a figure as a PNG, without the name of the software that drew it."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    write_atomically(path, buffer.getvalue())


@dataclass(frozen=True)
class Strip:
    """One row of images.

    Attributes:
        title: the text to the left of the row.
        images: [n, channels, height, width] in [0, 1], or None for a row without images.
        note: the text in place of images.
        gap: whether a new block begins with this row.
    """

    title: str
    images: Tensor | None
    note: str = ""
    gap: bool = False


def gallery(strips: Sequence[Strip], heading: str, columns: int = 10) -> Figure:
    """Rows of images, grey or in colour."""
    from matplotlib.figure import Figure

    heights = [0.25 if s.gap else 0.0 for s in strips]
    figure = Figure(figsize=(2.4 + 0.72 * columns, 0.78 * len(strips) + sum(heights) + 0.65), dpi=110)
    width, height = figure.get_size_inches()
    top = height - 0.5
    figure.text(0.12 / width, 1 - 0.25 / height, heading, fontsize=10, va="center")
    for strip, gap in zip(strips, heights, strict=True):
        top -= gap
        middle = top - 0.36
        figure.text(2.3 / width, middle / height, strip.title, ha="right", va="center", fontsize=8)
        if strip.images is None:
            figure.text(2.45 / width, middle / height, strip.note, ha="left", va="center", fontsize=7, wrap=True)
        for i, image in enumerate(strip.images[:columns] if strip.images is not None else []):
            axes = figure.add_axes(((2.4 + 0.72 * i) / width, (top - 0.7) / height, 0.68 / width, 0.68 / height))
            picture = image.clamp(0, 1).permute(1, 2, 0).numpy()
            axes.imshow(picture.squeeze(-1) if picture.shape[-1] == 1 else picture, cmap="gray", vmin=0, vmax=1)
            axes.set_axis_off()
        top -= 0.78
    return figure


@dataclass(frozen=True)
class Line:
    """One curve.

    Attributes:
        bold: whether it is drawn with a thick line.
        error: half the length of the error bar at each point; empty for no bars.
    """

    title: str
    x: Sequence[float]
    y: Sequence[float]
    bold: bool = False
    error: Sequence[float] = ()


@dataclass(frozen=True)
class Panel:
    """Curves over common axes.

    Attributes:
        x, y: the labels of the axes.
        log: whether y is logarithmic.
        unit: whether y is drawn from 0 to 1.
        ticks: names of positions on x, in place of numbers.
    """

    title: str
    lines: Sequence[Line]
    x: str
    y: str
    log: bool = False
    unit: bool = False
    ticks: Mapping[float, str] = field(default_factory=dict)


STYLES = ("-", "--", ":", "-.")
SHADES = ("#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00")
"""Okabe and Ito's colours, distinct to the colour-blind; line styles distinguish curves without colour."""


def curves(lines: Sequence[Line], heading: str, x: str, y: str) -> Figure:
    """Curves over a common axis."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.2), dpi=110, layout="constrained")
    axes = figure.add_subplot()
    for i, line in enumerate(lines):
        style, shade = STYLES[i % len(STYLES)], SHADES[i % len(SHADES)]
        axes.plot(line.x, line.y, style, color=shade, linewidth=2.2 if line.bold else 1.2, label=line.title)
    axes.set(xlabel=x, ylabel=y, ylim=(0, 1))
    axes.set_title(heading, fontsize=10)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    return figure


MARKERS = ("o", "s", "^", "D", "v", "x")


def panels(rows: Sequence[Sequence[Panel]], heading: str) -> Figure:
    """Panels in rows and columns with one legend. Curves of one name look the same in all panels."""
    from matplotlib.figure import Figure

    columns = max(len(row) for row in rows)
    figure = Figure(figsize=(max(7.2, 3.6 * columns), 2.9 * len(rows) + 1.1), dpi=110, layout="constrained")
    grid = figure.subplots(len(rows), columns, squeeze=False)
    names = list(dict.fromkeys(line.title for row in rows for panel in row for line in panel.lines))
    handles = {}
    for row, places in zip(rows, grid, strict=True):
        for axes in places[len(row) :]:
            axes.set_axis_off()
        for panel, axes in zip(row, places, strict=False):
            for line in panel.lines:
                i = names.index(line.title)
                look = {
                    "linestyle": STYLES[i % len(STYLES)],
                    "color": SHADES[i % len(SHADES)],
                    "linewidth": 2.2 if line.bold else 1.2,
                }
                if line.error:
                    look |= {"marker": MARKERS[i % len(MARKERS)], "markersize": 4, "capsize": 3, "yerr": line.error}
                    handles[line.title] = axes.errorbar(line.x, line.y, **look)
                else:
                    (handles[line.title],) = axes.plot(line.x, line.y, **look)
            axes.set_title(panel.title, fontsize=9)
            axes.set_xlabel(panel.x, fontsize=8)
            axes.set_ylabel(panel.y, fontsize=8)
            if panel.log:
                axes.set_yscale("log")
            if panel.unit:
                axes.set_ylim(0, 1)
            if panel.ticks:
                axes.set_xticks(list(panel.ticks), list(panel.ticks.values()))
            axes.tick_params(labelsize=8)
            axes.grid(alpha=0.3)
    figure.suptitle(heading, fontsize=10)
    legend = [handles[name] for name in names]
    figure.legend(legend, names, loc="outside lower center", ncols=min(3, len(names)), fontsize=8)
    return figure


@dataclass(frozen=True)
class Cloud:
    """Named points.

    Attributes:
        points: name → (x, y).
        x, y: the labels of the axes.
        named: up to which x the name of a point stands beside it.
    """

    title: str
    points: Mapping[str, tuple[float, float]]
    x: str
    y: str
    named: float


def clouds(row: Sequence[Cloud], heading: str) -> Figure:
    """Clouds of points side by side, from 0 on both axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(max(7.2, 3.9 * len(row)), 3.8), dpi=110, layout="constrained")
    for cloud, axes in zip(row, figure.subplots(1, len(row), squeeze=False)[0], strict=True):
        axes.plot(*zip(*cloud.points.values(), strict=True), "o", color=SHADES[1], markersize=4, alpha=0.7)
        for name, (x, y) in cloud.points.items():
            if x <= cloud.named:
                axes.annotate(name, (x, y), xytext=(4, 3), textcoords="offset points", fontsize=7)
        axes.set_xlim(0, None)
        axes.set_ylim(0, None)
        axes.set_title(cloud.title, fontsize=9)
        axes.set_xlabel(cloud.x, fontsize=8)
        axes.set_ylabel(cloud.y, fontsize=8)
        axes.tick_params(labelsize=8)
        axes.grid(alpha=0.3)
    figure.suptitle(heading, fontsize=10)
    return figure


@dataclass(frozen=True)
class Map:
    """Shares as a grid of shaded cells.

    Attributes:
        shares: in [0, 1], by row and column; NaN where there is none.
        rows, columns: their names.
        x: the label below the columns.
    """

    title: str
    shares: Sequence[Sequence[float]]
    rows: Sequence[str]
    columns: Sequence[str]
    x: str = ""


def maps(grid: Sequence[Sequence[Map]], heading: str) -> Figure:
    """Maps in rows and columns, each cell with its share in per cent; only the first of a row has the rows' names."""
    from matplotlib.figure import Figure

    width = sum(0.8 + 0.26 * len(m.columns) for m in grid[0]) + 1.5
    height = sum(1.2 + 0.26 * len(row[0].rows) + 0.05 * max(map(len, row[0].columns)) for row in grid) + 0.4
    figure = Figure(figsize=(max(width, 7.2), height), dpi=110, layout="constrained")
    for row, places in zip(grid, figure.subplots(len(grid), len(grid[0]), squeeze=False), strict=True):
        for i, (shown, axes) in enumerate(zip(row, places, strict=True)):
            axes.imshow(shown.shares, cmap="Reds", vmin=0, vmax=1, aspect="auto")
            for y, line in enumerate(shown.shares):
                for x, share in enumerate(line):
                    text, colour = "–" if share != share else f"{100 * share:.0f}", "white" if share > 0.6 else "black"
                    axes.text(x, y, text, ha="center", va="center", fontsize=7, color=colour)
            axes.set_yticks(range(len(shown.rows)), [""] * len(shown.rows) if i else list(shown.rows), fontsize=8)
            long = max(map(len, shown.columns)) > 8
            axes.set_xticks(range(len(shown.columns)), list(shown.columns), rotation=90 if long else 0, fontsize=7)
            axes.set_xlabel(shown.x, fontsize=8)
            axes.set_title(shown.title, fontsize=9)
    figure.suptitle(heading, fontsize=10)
    return figure
