"""The paper's number against ours.

    held            the difference is within the tolerance, or the paper's number, give or take half of its last digit,
                    lies within our 95 % interval (Student's t over two seeds or more)
    open            the latter, but the interval reaches further than three tolerances to either side and decides
                    nothing
    better, differs otherwise, by which side of the paper's number ours is on
    not comparable  measured, but on something else than the paper's: the setting says on what
    no result       measured, and no number came out
    not measured    nothing is there

The tolerance is a percentage point for shares, such as accuracies and AUCs, and a tenth of the paper's number for
everything else. One seed has no interval: its verdict goes by the tolerance alone. What the paper says in words has
bounds that the table states, and is held where our mean lies within them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from fedarena.core.text.numbers import Mean, mean
from fedarena.reproduce.published import Published

Verdict = Literal["held", "better", "differs", "open", "no result", "not comparable", "not measured"]
VERDICTS: tuple[Verdict, ...] = ("held", "better", "differs", "open", "no result", "not comparable", "not measured")

POINT, TENTH, WIDE = 0.01, 0.1, 3.0
"""The tolerance of shares, that of other numbers relative to the paper's, and the widest interval in tolerances."""
ROUNDING = 1e-9
"""An allowance with which .80 and .79 differ by one point in floating point as well."""


def tolerance(published: Published) -> float:
    """The tolerance: how much ours may differ from a number of a paper."""
    assert not isinstance(published.paper, str)
    return POINT if published.share else TENTH * abs(published.paper)


def ours_of(values: Sequence[object]) -> Mean | str | None:
    """The mean of the values of all seeds, or the words of a seed that has words; None if a seed has nothing.

    Words take precedence: a seed with which a run missed its target says more than the mean of the others.
    """
    words = list(dict.fromkeys(v for v in values if isinstance(v, str)))
    numbers = [float(v) for v in values if isinstance(v, int | float)]
    if words:
        return ", ".join([*words, *(f"{n:.4g}" for n in numbers)])
    return mean(numbers) if numbers and len(numbers) == len(values) else None


def verdict(published: Published, ours: Mean | str | None) -> Verdict:
    """The verdict on a number that was measured."""
    if ours is None:
        return "no result"
    if published.apart:
        return "not comparable"
    if published.within is not None:
        low, high = published.within
        return "held" if isinstance(ours, Mean) and low <= ours.value <= high else "differs"
    if isinstance(ours, str) or isinstance(published.paper, str):
        return "differs"
    apart, allowed = ours.value - published.paper, tolerance(published) + ROUNDING
    if abs(apart) <= allowed:
        return "held"
    if ours.half is not None and abs(apart) <= ours.half + 0.5 * 10.0**-published.decimals + ROUNDING:
        return "held" if ours.half <= WIDE * allowed else "open"
    return "better" if published.better == ("higher" if apart > 0 else "lower") else "differs"


def difference(published: Published, ours: Mean | str | None) -> float | None:
    """Ours minus the paper's; None unless both are numbers that can be compared."""
    if isinstance(published.paper, str) or not isinstance(ours, Mean) or published.apart:
        return None
    return ours.value - published.paper
