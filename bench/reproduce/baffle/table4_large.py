"""BAFFLE, Table 4, for images of ImageNet's size. Everything else is as in `baffle/table4`.

The paper's column is called OfficeHome/ImageNet, the text gives 224×224 for OfficeHome. It does not state the number of
classes, which is taken to be ImageNet's."""

from __future__ import annotations

from fedarena.reproduce.baffle.table4 import BATCH, CPU_ONLY, Numbers, published, round_of, row
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.progress import Progress
from fedarena.reproduce.table import Row, Table

SHAPE, CLASSES = (3, 224, 224), 1000

SETTING = (
    f"as baffle/table4, with 3×224×224 images of {CLASSES} classes, batch {BATCH}: MB (10⁶ bytes) of a client's round"
)

PAPER: dict[str, Numbers] = {
    "LeNet": (2527, 86, 201, 7.95),
    "WRN-10-2": (3425, 94, 251, 7.32),
    "MobileNet": (5271, 121, 289, 5.48),
}
"""Backpropagation, least, most; the ratio in per cent, as printed."""


def rows(model: str, machine: Machine, seed: int, progress: Progress) -> list[Row]:
    """One network's row; the figures do not depend on the seed."""
    return [row(model, round_of(model, seed, SHAPE, CLASSES), PAPER[model])]


TABLE = Table(setting=SETTING, pieces=tuple(PAPER), rows=rows, published=published(PAPER), cpu_only=CPU_ONLY)
