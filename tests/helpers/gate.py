"""Boards for the gate: as many defenses and attacks as a test needs, with scores that a law draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from fedarena.board.board import Board, BoardCell, CleanRun
from fedarena.core.rng import Rng
from helpers.board import make_board, make_cell, make_clean_run

SEEDS = (0, 1, 2)


def wide_board(defenses: int = 6, attacks: int = 12, seeds: int = 3, stream: int = 0, noise: float = 0.02) -> Board:
    """Scores between 0.3 and 0.7 that no stream changes, plus normal noise that each stream draws anew.

    The first third of the attacks poisons.
    """
    levels = Rng(0).child("levels").numpy().uniform(0.3, 0.7, (defenses, attacks))
    drawn = levels[:, :, None] + noise * Rng(stream).child("noise").numpy().normal(size=(defenses, attacks, seeds))
    names = ["fedavg", *(f"defense{i}" for i in range(1, defenses))]
    cells = [
        make_cell(
            name,
            f"attack{a}",
            np.clip(drawn[d, a], 0, 1).tolist(),
            seeds=range(seeds),
            axis="integrity" if a < attacks // 3 else "privacy",
        )
        for d, name in enumerate(names)
        for a in range(attacks)
    ]
    honest = [make_clean_run(name, range(seeds), level=1 - 0.01 * d) for d, name in enumerate(names)]
    return make_board(cells, honest, seeds=tuple(range(seeds)))


def change_cells(board: Board, change: Callable[[BoardCell], BoardCell]) -> Board:
    """With `change` applied to every cell."""
    return replace(board, cells=tuple(change(c) for c in board.cells))


def change_clean_runs(board: Board, change: Callable[[CleanRun], CleanRun]) -> Board:
    """With `change` applied to every clean run."""
    return replace(board, clean_runs=tuple(change(h) for h in board.clean_runs))
