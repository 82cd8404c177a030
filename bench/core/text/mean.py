"""Means with their 95 % confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev


@dataclass(frozen=True)
class Mean:
    """A mean over seeds with its 95 % confidence half-width (None for fewer than two seeds)."""

    value: float
    half: float | None
    seeds: int


def mean(values: Sequence[float], together: int = 1) -> Mean:
    """The mean of values with its 95 % half-width by Student's t.

    Args:
        together: the number of intervals that hold simultaneously with 95 % confidence (Bonferroni); this is one.
    """
    n = len(values)
    if n < 2:
        return Mean(fmean(values), None, n)
    return Mean(fmean(values), t_quantile(n - 1, together) * stdev(values) / math.sqrt(n), n)


def t_quantile(degrees: int, together: int = 1) -> float:
    """The quantile of Student's t at 97.5 %, or at 1 − 0.025/together."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, above_most(together)))


def above_most(together: int = 1) -> float:
    """The level of the upper quantile of a 95 % interval, of several that hold simultaneously (Bonferroni)."""
    return 1 - 0.025 / together
