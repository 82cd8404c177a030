"""Ranks as ranges: which ranks a defense may have, given the intervals of the scores by which all are ranked.

A defense ranks below those whose interval lies wholly above its own, and above those whose interval lies wholly below.
Among the others the board shows no order. Ends are compared to three digits, as scores are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fedarena.core.text.numbers import Mean

DIGITS = 3
"""Scores that agree to so many digits are a tie, since a reader sees no more."""


@dataclass(frozen=True)
class RankRange:
    """The ranks that a defense may have, from 1.

    Attributes:
        first: 1 + how many ranked defenses lie wholly above it.
        last: how many are ranked, less those that lie wholly below it.
    """

    first: int
    last: int

    @property
    def text(self) -> str:
        """ "2", or "1–3"."""
        return str(self.first) if self.first == self.last else f"{self.first}–{self.last}"


def rank_ranges(scores: Sequence[Mean]) -> list[RankRange]:
    """The range of each score among these. A score without an interval, of one seed, is a point."""
    return [
        RankRange(
            1 + sum(wholly_above(other, one) for other in scores),
            len(scores) - sum(wholly_above(one, other) for other in scores),
        )
        for one in scores
    ]


def wholly_above(one: Mean, other: Mean) -> bool:
    """Whether the interval of one lies above the whole interval of the other."""
    return _ends(one)[0] > _ends(other)[1]


def _ends(score: Mean) -> tuple[float, float]:
    low, high = score.interval or (score.value, score.value)
    return round(low, DIGITS), round(high, DIGITS)
