"""A figure of a report: its file, its caption, and its text for readers who do not see it."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LARGEST = 150_000
"""Bytes of a picture; a larger one is written in so few colours that it fits, if the last of `COLOURS` suffices."""
COLOURS = (256, 128)


@dataclass(frozen=True)
class ReportFigure:
    """A figure.

    Attributes:
        name: file name in images/, without its ending.
        alt: what it shows, in numbers.
        caption: what it is and how to read it; markdown.
        png: the contents of the file.
    """

    name: str
    alt: str
    caption: str
    png: bytes

    @property
    def path(self) -> str:
        """The path of the file relative to the report."""
        return f"images/{self.name}.png"


def file_name(*words: str) -> str:
    """Words as a file name: lower case, joined by hyphens."""
    return "-".join(re.sub(r"[^a-z0-9]+", "-", word.lower()).strip("-") or "x" for word in words)


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
