"""What a ranking of few can tell of the area under its ROC curve, near certainty too.

An interval by standard errors shrinks to nothing as a ranking becomes perfect: of 30 positives and 120 negatives whose
true AUC is 0.98, it holds the truth in 72 to 92 of 100 draws, by their law. A score interval does not, since it asks
for each A what spread an AUC of A would have.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

from fedarena.core.text.numbers import above_most

BISECTIONS = 60


def score_interval(auc: float, positives: int, negatives: int, together: int = 1) -> tuple[float, float]:
    """The 95 % interval of an AUC: all A with |AUC − A| ≤ z √V(A), where (Newcombe, Statistics in Medicine 25, 2006,
    part 2, method 5), with m positives, n negatives and N = (m + n) / 2,

        V(A) = A (1 − A) [1 + (N − 1)(1 − A)/(2 − A) + (N − 1) A/(1 + A)] / (m n)

    It supposes scores whose spreads are alike; with positives' twice as wide it holds the truth in 87 of 100 or more,
    and four that are to hold together do in 84 or more.

    Args:
        auc: from 0 to 1.
        together: how many such intervals hold all at once, in 95 of 100 cases; z is of 1 − 0.025/together.

    Raises:
        ValueError: an AUC that is none, or nobody on either side.
    """
    if not 0 <= auc <= 1 or positives < 1 or negatives < 1:
        raise ValueError(f"an AUC of {auc} of {positives} positives and {negatives} negatives")
    larger, z = (positives + negatives) / 2 - 1, NormalDist().inv_cdf(above_most(together))

    def outside(a: float) -> bool:
        variance = a * (1 - a) * (1 + larger * (1 - a) / (2 - a) + larger * a / (1 + a)) / (positives * negatives)
        return abs(auc - a) > z * math.sqrt(variance)

    return _edge(auc, 0.0, outside), _edge(auc, 1.0, outside)


def _edge(inside: float, end: float, outside: Callable[[float], bool]) -> float:
    """Where what lies outside begins, on the way to `end`."""
    if inside == end:
        return end
    for _ in range(BISECTIONS):
        middle = (inside + end) / 2
        if outside(middle):
            end = middle
        else:
            inside = middle
    return inside
