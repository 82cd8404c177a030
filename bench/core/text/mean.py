"""Means with their 95 % intervals."""

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
    """Mean and Student-t 95 % half-width.

    Args:
        together: intervals that are to hold all at once, in 95 of 100 cases (Bonferroni), of which this is one.
    """
    n = len(values)
    if n < 2:
        return Mean(fmean(values), None, n)
    return Mean(fmean(values), t_quantile(n - 1, together) * stdev(values) / math.sqrt(n), n)


def t_quantile(degrees: int, together: int = 1) -> float:
    """Student's t below which 97.5 % lie, or 1 − 0.025/together."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, above_most(together)))


def above_most(together: int = 1) -> float:
    """Which quantile ends an interval of 95 % on either side, of so many that hold all at once (Bonferroni)."""
    return 1 - 0.025 / together
