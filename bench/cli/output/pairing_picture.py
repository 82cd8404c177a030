"""The picture of a pairing, drawn as its goal gives it."""

from __future__ import annotations

from pathlib import Path

from fedarena.core.text.figures import curves, gallery, panels
from fedarena.goals.pairing_table import Figure, Images, Panels


def draw(figure: Figure | None, path: Path) -> Path | None:
    """Write a figure as a PNG; where it is then, None where there is none."""
    if figure is None:
        return None
    if isinstance(figure, Images):
        gallery(figure.strips, figure.title, path)
    elif isinstance(figure, Panels):
        panels(figure.rows, figure.title, path)
    else:
        curves(figure.lines, figure.title, figure.x, figure.y, path)
    return path
