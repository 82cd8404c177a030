"""False alarms on boards of which nothing but the random streams changed."""

from __future__ import annotations

from dataclasses import replace

from helpers.gate import wide_board
from scipy import stats

from fedarena.board.gate.compare import compare
from fedarena.core.rng import Rng

DRAWS, RATE = 120, 0.05
ALLOWED = int(stats.binom.ppf(1 - 1e-4, DRAWS, RATE))
"""More alarms than this come once in ten thousand times if the rate holds."""


def alarms(seeds: int, leaping: bool) -> int:
    """Pairs of boards with a finding; a tenth of the cells tosses coins if `leaping`."""
    found = 0
    for draw in range(DRAWS):
        pair = [wide_board(seeds=seeds, stream=2 * draw + i) for i in range(2)]
        if leaping:
            g = Rng(draw).child("coins").numpy()
            coins, p = g.random(len(pair[0].cells)) < 0.1, g.random(len(pair[0].cells))
            for i, board in enumerate(pair):
                tossed = (g.random((len(board.cells), seeds)) < p[:, None]).astype(float).tolist()
                cells = [
                    replace(c, scores=dict(enumerate(row))) if coin else c
                    for c, coin, row in zip(board.cells, coins, tossed, strict=True)
                ]
                pair[i] = replace(board, cells=tuple(cells))
        found += bool(compare(pair[0], pair[1]).findings)
    return found


def test_noise_alone_is_seldom_found() -> None:
    assert 5 < ALLOWED < 20
    assert alarms(3, leaping=False) <= ALLOWED


def test_cells_that_leap_are_seldom_found() -> None:
    assert alarms(3, leaping=True) <= ALLOWED
    assert alarms(5, leaping=True) <= ALLOWED
