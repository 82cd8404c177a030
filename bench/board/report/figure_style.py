"""The common look of a report's figures: names, curves, panels and legends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from fedarena.core.text.figures import SHADES
from fedarena.core.text.printable import one_line

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LONGEST = 28
"""Letters of a name."""

SHADE, INK = SHADES[1], "#777777"
"""The colour of data where position alone distinguishes them, and of what stands behind the data."""
LINES = ("-", ":", "-.")
"""Line styles of curves that are compared; dashes, and black, are reserved for the run without an attack."""
MARKERS = ("o", "s", "^", "D", "v", "P", "*", "<", ">")
"""Shapes that can be distinguished when they are small."""
FILLS = ("full", "none", "left")

COLUMNS = 5
"""Columns of a legend, at most."""
EDGE = 0.1
"""Inches beside a legend that stay empty; letters are not exactly as wide in a file as they are measured."""


def label(text: str) -> str:
    """A name in a figure: as `plain`, and of a long name both ends, in which composed names differ."""
    flat, half = " ".join(text.split()), LONGEST // 2
    return plain(flat if len(flat) <= LONGEST else f"{flat[:half]}…{flat[half + 1 - LONGEST :]}")


def plain(text: str) -> str:
    """Words in a figure: whole, on one line, and never a formula whatever characters they have.

    Of control characters they have pictures: matplotlib would name one that its font lacks on the terminal.
    """
    return one_line(" ".join(text.split())).replace("$", r"\$")


def curve_style(i: int) -> dict[str, Any]:
    """The look of the i-th of several curves: a colour, and a marker, filling and line style that do without colour.

    The first 27 differ in marker or filling.
    """
    turn, shape = divmod(i, len(MARKERS))
    return {
        "color": SHADES[1 + i % (len(SHADES) - 1)],
        "marker": MARKERS[shape],
        "fillstyle": FILLS[turn % len(FILLS)],
        "markerfacecoloralt": "white",
        # Curves with the same shape and another filling have another line style.
        "linestyle": LINES[(i + turn) % len(LINES)],
        "markersize": 4.5,
        "linewidth": 1.3,
    }


def marker_points(i: int, points: int, most: int = 6) -> tuple[int, int]:
    """(first, step) of the points with a marker on the i-th curve.

    Not all points have one, and on the next curve others do, so that curves that coincide can all be seen. There is
    always one; on a curve of two or three points each has one.
    """
    every = max(1, min(3, points // 2), points // most)
    return i % every, every


def panels(figure: Figure, names: list[str], columns: int) -> Iterator[tuple[Axes, str]]:
    """A panel with a title for each name, in rows, with common axes; panels that are left over stay empty."""
    rows = -(-len(names) // columns)
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).flatten()
    for axes in grid[len(names) :]:
        axes.set_axis_off()
    yield from zip(grid, names, strict=False)


def legend_below(figure: Figure, handles: Mapping[str, Artist]) -> None:
    """A legend below all panels, with as many columns as fit the width; the figure grows by its height."""
    names = [label(name) for name in handles]
    wide, high = figure.get_size_inches()
    for columns in range(min(COLUMNS, len(names)), 0, -1):
        legend = figure.legend(handles.values(), names, loc="outside lower center", ncols=columns, fontsize=8)
        box = legend.get_window_extent()
        if columns == 1 or box.width / figure.dpi <= wide - 2 * EDGE:
            figure.set_size_inches(wide, high + box.height / figure.dpi)
            return
        legend.remove()
