"""The paper's number against ours.

    held            the difference is within what is allowed: the tolerance, or two standard errors of the difference
                    if these are more
    open            the latter, but two standard errors are more than three tolerances and decide nothing
    better, differs otherwise, by which side of the paper's number ours is on
    not comparable  measured, but on something else than the paper's
    no result       measured, and no number came out
    not measured    nothing is there

The tolerance is .02 for shares, such as accuracies and AUCs, and a tenth of the paper's number for everything else.
What the paper says in words has bounds that the table states, and is held where our mean lies within them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from fedarena.core.text.numbers import Mean, mean, t_quantile
from fedarena.reproduce.published import Published

Verdict = Literal["held", "better", "differs", "open", "no result", "not comparable", "not measured"]
VERDICTS: tuple[Verdict, ...] = ("held", "better", "differs", "open", "no result", "not comparable", "not measured")
APART: tuple[Verdict, ...] = ("better", "differs")
"""The verdicts on a number that does not come back, each of which needs a cause."""

SHARE, TENTH, WIDE = 0.02, 0.1, 3.0
"""The tolerance of shares, that of other numbers relative to the paper's, and the most of two standard errors that
decides anything, in tolerances."""
ERRORS = 2.0
"""The number of standard errors by which ours may differ."""
ROUNDING = 1e-9
"""An allowance with which .80 and .78 differ by .02 in floating point as well."""


def tolerance(published: Published) -> float:
    """How much ours may differ from a number of a paper, whatever the standard error."""
    assert not isinstance(published.paper, str)
    return SHARE if published.share else TENTH * abs(published.paper)


def standard_error(published: Published, ours: Mean | str | None) -> float | None:
    """The standard error of the difference; None where the scatter of neither number is known.

    One seed of ours is taken to scatter as the paper's runs do, if these have a known spread. A paper's number without
    one is taken to be exact.
    """
    if not isinstance(ours, Mean):
        return None
    theirs = published.spread
    if ours.half is not None:
        own = ours.half / t_quantile(ours.seeds - 1)
    elif theirs is not None:
        own = theirs.deviation
    else:
        return None
    return math.hypot(own, theirs.deviation / math.sqrt(theirs.seeds) if theirs else 0.0)


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
    if published.apart:
        return "not comparable"
    if ours is None:
        return "no result"
    if published.within is not None:
        low, high = published.within
        return "held" if isinstance(ours, Mean) and low <= ours.value <= high else "differs"
    if isinstance(ours, str) or isinstance(published.paper, str):
        return "differs"
    apart, allowed = ours.value - published.paper, tolerance(published) + ROUNDING
    by_chance = ERRORS * (standard_error(published, ours) or 0.0) + ROUNDING
    if abs(apart) <= max(allowed, by_chance):
        return "held" if abs(apart) <= allowed or by_chance <= WIDE * allowed else "open"
    return "better" if published.better == ("higher" if apart > 0 else "lower") else "differs"


def difference(published: Published, ours: Mean | str | None) -> float | None:
    """Ours minus the paper's; None unless both are numbers that can be compared."""
    if isinstance(published.paper, str) or not isinstance(ours, Mean) or published.apart:
        return None
    return ours.value - published.paper
