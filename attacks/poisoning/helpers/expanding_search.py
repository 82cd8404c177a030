"""A line search that first expands its step and then contracts it, of ByzFL's optimised attacks."""

from __future__ import annotations

import math
from collections.abc import Callable


def largest_of(value: Callable[[float], float], evaluations: int, step: float, ratio: float) -> float:
    """The x ≥ 0 with the largest value that was found, from x = 0 on.

        expand     while value(x + step) > value(x):  x ← x + step, step ← 2·step
        contract   step ← ratio·step; x ← x + step where that is better; until the evaluations are spent

    A value that is not finite counts as no better.

    Args:
        evaluations: how often `value` may be called, at least once. step: above 0. ratio: in (0, 1).
    """
    best, highest, expanding = 0.0, value(0.0), True
    for _ in range(evaluations - 1):
        tried = value(best + step)
        better = math.isfinite(tried) and tried > highest
        if better:
            best, highest = best + step, tried
        expanding = expanding and better
        step *= 2 if expanding else ratio
    return best
