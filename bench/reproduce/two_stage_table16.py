"""Two-stage, Table 16: as Table 15, with the classes shared out unevenly (Algorithm 4)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fedarena.reproduce.two_stage import MEASURED, Cell, Progress, one, published, reference

SETTING = "test accuracy of DP alone, honest workers alone, by ε, shards by Algorithm 4"

PAPER = {
    "mnist": {None: 0.98, 2.0: 0.96, 1.0: 0.95, 0.5: 0.95, 0.25: 0.93, 0.125: 0.88},
    "fashion-mnist": {None: 0.88, 2.0: 0.80, 1.0: 0.79, 0.5: 0.77, 0.25: 0.75, 0.125: 0.70},
    "usps": {None: 0.91, 2.0: 0.87, 1.0: 0.86, 0.5: 0.82, 0.25: 0.76, 0.125: 0.63},
}
"""Data set → ε → accuracy; None: no noise."""

CELLS: list[Cell] = [
    reference(data, "RA" if epsilon else "Non-DP", paper, epsilon, partition="algorithm4")
    for data, by_epsilon in PAPER.items()
    for epsilon, paper in by_epsilon.items()
]

PIECES = tuple(cell.name for cell in CELLS)
PUBLISHED = published(CELLS)


def rows(piece: str, data_dir: Path | None, seed: int, progress: Progress) -> list[dict[str, Any]]:
    """One cell."""
    return one(CELLS, piece, data_dir, seed, progress)


__all__ = ["MEASURED", "PIECES", "PUBLISHED", "SETTING", "rows"]
