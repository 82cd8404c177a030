"""Two-stage, Table 6: what the server believes, when half of the workers are label flippers.

γ is the share of workers that the server takes for honest. A small γ divides the sum of few uploads by all workers; the
rows with divisor=selected divide it by the number selected and change nothing else."""

from __future__ import annotations

from functools import partial

from fedarena.reproduce.two_stage import MEASURED, Cell, one, published

SETTING = "test accuracy, 50 % label flippers, by the share of workers that the server takes for honest"

PAPER = {
    "mnist": {0.125: (0.86, 0.87, 0.88, 0.85, 0.83), 2.0: (0.95, 0.96, 0.96, 0.96, 0.95)},
    "fashion-mnist": {0.125: (0.66, 0.69, 0.69, 0.70, 0.69), 2.0: (0.78, 0.79, 0.80, 0.79, 0.79)},
    "usps": {0.125: (0.64, 0.63, 0.64, 0.56, 0.54), 2.0: (0.85, 0.86, 0.87, 0.87, 0.85)},
}
"""Data set → ε → accuracy at γ = 20, 35, 50, 65, 80 %."""
GAMMAS = (0.2, 0.35, 0.5, 0.65, 0.8)

CELLS = [
    Cell(data, f"label flip, γ = {gamma:.0%}", paper, 0.5, epsilon, "label-flip", settings=(("gamma", f"{gamma:g}"),))
    for data, by_epsilon in PAPER.items()
    for epsilon, papers in by_epsilon.items()
    for gamma, paper in zip(GAMMAS, papers, strict=True)
] + [
    Cell(
        data,
        f"label flip, γ = {GAMMAS[0]:.0%}, divisor=selected",
        papers[0],
        0.5,
        epsilon,
        "label-flip",
        settings=(("gamma", f"{GAMMAS[0]:g}"), ("divisor", "selected")),
    )
    for data, by_epsilon in PAPER.items()
    for epsilon, papers in by_epsilon.items()
]

PIECES = tuple(cell.name for cell in CELLS)
PUBLISHED = published(CELLS)
rows = partial(one, CELLS)

__all__ = ["MEASURED", "PIECES", "PUBLISHED", "SETTING", "rows"]
