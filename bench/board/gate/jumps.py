"""Scores that leap: when all seeds agree by chance.

An attack that recovers all or nothing, seed by seed, may well fail three times in a row before a change and succeed
three times in a row after it. No variance shows that: within both it is 0. What shows it is other cells of the kind,
some of which are caught leaping between seeds.

Let a score be high with probability p, u = p (1 − p), n seeds before and n after. The chance that all are alike
before, and all alike after and different, is 2uⁿ; the chance that the seeds of one side are not all alike is
1 − pⁿ − (1 − p)ⁿ. Whatever p is, the first is at most c(n) times the second, with

    c(n) = 2 · 4⁻ⁿ / (1 − 2¹⁻ⁿ),    1/24 for 3 seeds, 1/480 for 5,

so the share of sides that leap by at least a gap, times c(n), bounds the chance of such a gap where nothing changed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence


def bound(seeds: int) -> float:
    """c(n), for n >= 2: the largest value of 2uⁿ / (1 − pⁿ − (1 − p)ⁿ), which is at p = 1/2."""
    return float(2 * 4.0**-seeds / (1 - 2.0 ** (1 - seeds)))


def gap(base: Sequence[float], new: Sequence[float]) -> float:
    """The distance between two sides if every seed of one is above every seed of the other; else 0."""
    return max(0.0, min(new) - max(base), min(base) - max(new))


class Leaps:
    """How widely seeds spread: largest minus least score, for every score of a kind before and after the change."""

    def __init__(self, kind: Sequence[float], board: Sequence[float]) -> None:
        """The spreads of one kind of score, and of the whole board."""
        self._kind, self._board = sorted(kind), sorted(board)

    def share(self, size: float) -> float:
        """The share of sides that spread by at least `size`.

        The board's own share counts as one further side. That share is smoothed by half a side, so that it is never 0.
        """
        usual = (_at_least(self._board, size) + 0.5) / (len(self._board) + 1)
        return (_at_least(self._kind, size) + usual) / (len(self._kind) + 1)

    def chance(self, size: float, seeds: int) -> float:
        """A bound for the chance that a score that did not change shows a gap of `size`; 1 for no gap at all."""
        return min(1.0, bound(seeds) * self.share(size)) if size > 0 else 1.0


def _at_least(ascending: Sequence[float], size: float) -> int:
    return len(ascending) - bisect_left(ascending, size - 1e-9)
