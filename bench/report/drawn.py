"""A figure of a report: its picture, what it says to those who do not see it, and how all figures look."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fedarena.figures import SHADES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LARGEST = 150_000
"""Bytes of a picture; a larger one is written in so few colours that it fits, if the last of `COLOURS` does."""
COLOURS = (256, 128)

LONGEST = 28
"""Letters of a name."""

LINES = ("-", ":", "-.")
"""Line styles of what is compared; dashes, and black, are kept for the run that nobody attacks."""
MARKERS = ("o", "s", "^", "D", "v", "x", "P", "*", "<", "h", ">", "+")


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
    """A name as it stands in a figure: one line, not too long, and no formula whatever signs it has."""
    flat = " ".join(text.split())
    return (flat if len(flat) <= LONGEST else f"{flat[: LONGEST - 1]}…").replace("$", r"\$")


def look(i: int) -> dict[str, Any]:
    """How the i-th of several curves or points is drawn: colours that the colour-blind tell apart, and a marker and a
    line style that do without colour. The first 12 differ in their marker."""
    return {
        "color": SHADES[1 + i % (len(SHADES) - 1)],
        "marker": MARKERS[i % len(MARKERS)],
        "linestyle": LINES[i % len(LINES)],
        "markersize": 4,
        "linewidth": 1.3,
    }


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
