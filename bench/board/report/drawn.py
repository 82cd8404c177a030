"""A figure of a report: its picture, what it says to those who do not see it, and how all figures look."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fedarena.core.text.figures import SHADES

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure

LARGEST = 150_000
"""Bytes of a picture; a larger one is written in so few colours that it fits, if the last of `COLOURS` does."""
COLOURS = (256, 128)

LONGEST = 28
"""Letters of a name."""

SHADE, INK = SHADES[1], "#777777"
"""Of what is told apart by its place alone; of what stands behind it."""
LINES = ("-", ":", "-.")
"""Line styles of what is compared; dashes, and black, are kept for the run that nobody attacks."""
MARKERS = ("o", "s", "^", "D", "v", "P", "*", "<", ">")
"""Shapes that stay apart when they are small."""
FILLS = ("full", "none", "left")

COLUMNS = 5
"""Of a legend, at most."""
EDGE = 0.1
"""Inches beside a legend that stay empty; letters are not exactly as wide in a file as they are measured."""


@dataclass(frozen=True)
class Drawn:
    """A figure.

    Attributes:
        name: file name below images/, without its ending.
        alt: what it shows, in numbers.
        caption: what it is and how to read it; markdown.
        png: the file.
    """

    name: str
    alt: str
    caption: str
    png: bytes

    @property
    def path(self) -> str:
        """Beside the report."""
        return f"images/{self.name}.png"


def file_name(*words: str) -> str:
    """Words as a file name: lower case, joined by hyphens."""
    return "-".join(re.sub(r"[^a-z0-9]+", "-", word.lower()).strip("-") or "x" for word in words)


def label(text: str) -> str:
    """A name as it stands in a figure: as `plain`, and of a long one both ends, in which composed names differ."""
    flat, half = " ".join(text.split()), LONGEST // 2
    return plain(flat if len(flat) <= LONGEST else f"{flat[:half]}…{flat[half + 1 - LONGEST :]}")


def plain(text: str) -> str:
    """Words as they stand in a figure: whole, on one line, and no formula whatever signs they have."""
    return " ".join(text.split()).replace("$", r"\$")


def look(i: int) -> dict[str, Any]:
    """How the i-th of several curves is drawn: colours that the colour-blind tell apart, and a marker, its filling and
    a line style that do without colour. The first 27 differ in marker or filling."""
    turn, shape = divmod(i, len(MARKERS))
    return {
        "color": SHADES[1 + i % (len(SHADES) - 1)],
        "marker": MARKERS[shape],
        "fillstyle": FILLS[turn % len(FILLS)],
        "markerfacecoloralt": "white",
        # Of the same shape, the next filling has the next style.
        "linestyle": LINES[(i + turn) % len(LINES)],
        "markersize": 4.5,
        "linewidth": 1.3,
    }


def marked(i: int, points: int, most: int = 6) -> tuple[int, int]:
    """Which points of the i-th curve have a marker: not all, and others than on the next curve, so that curves that
    lie on one another are all seen. There is always one; of a curve of two or three points, which is all corners, each
    has one."""
    every = max(1, min(3, points // 2), points // most)
    return i % every, every


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


def as_png(figure: Figure) -> bytes:
    """The same bytes for the same figure: no date and no version in the file."""
    from PIL import Image

    raw, buffer = io.BytesIO(), io.BytesIO()
    figure.savefig(raw, format="png", dpi=110, metadata={"Software": None})
    with Image.open(raw) as picture:
        drawn = picture.convert("RGB")
    drawn.save(buffer, format="PNG", optimize=True)
    for colours in COLOURS:
        if buffer.tell() > LARGEST:
            buffer = io.BytesIO()
            drawn.quantize(colours, dither=Image.Dither.NONE).save(buffer, format="PNG", optimize=True)
    return buffer.getvalue()
