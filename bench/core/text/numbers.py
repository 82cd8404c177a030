"""Numbers as text: shares in per cent, counts with their nouns, means with intervals, ranges in texts."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean, stdev


def percent(m: Mean) -> str:
    """A share in percent, as `share`: "43 ± 5 %"."""
    return share(m, lambda value: f"{100 * value:.0f}", " %")


def share(m: Mean, shown: Callable[[float], str] = "{:.2f}".format, unit: str = "") -> str:
    """A share with its interval: "0.43 ± 0.05", or "0.43" for one seed.

    An interval that goes beyond [0, 1] is cut to it and given by its ends: "0.98 (0.91 to 1.00)". So is one that is not
    symmetric.
    """
    if m.interval is None:
        return f"{shown(m.value)}{unit}"
    low, high = m.interval
    if m.half is None or low < 0 or high > 1:
        return f"{shown(m.value)}{unit} ({shown(max(0.0, low))} to {shown(min(1.0, high))}{unit})"
    return f"{shown(m.value)} ± {shown(m.half)}{unit}"


def number(m: Mean) -> str:
    """A number with its interval."""
    return f"{m.value:.2f}" + (f" ± {m.half:.2f}" if m.half is not None else "")


def digits(m: Mean) -> str:
    """Three digits of a number of any size, with its interval."""
    return f"{m.value:.3g}" + (f" ± {m.half:.3g}" if m.half is not None else "")


def size(n: float) -> str:
    """A number of bytes: "3.2 kB"."""
    return f"{n / 1e6:.2f} MB" if n >= 1e6 else f"{n / 1e3:.1f} kB"


MEASURES = {"accuracy": "accuracy", "R2": "R²"}
"""The printed names of `fedarena.problem.loss.Criterion.measure`."""


def level(m: Mean, measure: str) -> str:
    """The quality of a model without the measure's name: an accuracy in percent, or R² as a number."""
    if measure != "R2":
        return percent(m)
    value = f"{m.value:.2f}" if m.value > -100 else "below -100"
    return value + (f" ± {m.half:.2f}" if m.half is not None and m.value > -100 else "")


def quality(m: Mean, measure: str) -> str:
    """The quality of a model, as "accuracy 97 %" or "R² 0.45"."""
    return f"{MEASURES[measure]} {level(m, measure)}"


def plural(n: int, one: str, many: str = "") -> str:
    """A count with its noun: `1 trial`, `1,506 trials`.

    Args:
        many: the plural, where it is not the singular with an s.
    """
    return f"{n:,} {one if n == 1 else many or f'{one}s'}"


NUMBER = re.compile(r"(?<![\w.,])\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?(?!\w)")
"""A number that stands alone in a text."""


def without_numbers(text: str) -> str:
    """What texts that differ in their numbers alone have in common."""
    return NUMBER.sub("0", text)


def with_ranges(texts: Sequence[str]) -> str:
    """Texts that differ in their numbers alone as one: "stopped in round 4–11 of 150"."""
    columns = zip(*(NUMBER.findall(text) for text in texts), strict=True)
    ranges = iter([_range(column) for column in columns])
    return NUMBER.sub(lambda match: next(ranges), texts[0])


def _range(numbers: Sequence[str]) -> str:
    """The lowest and the highest of numbers, as they are printed; one if they are equal."""
    low, high = (end(numbers, key=lambda printed: float(printed.replace(",", ""))) for end in (min, max))
    return low if low == high else f"{low}–{high}"


@dataclass(frozen=True)
class Mean:
    """A mean over seeds with its 95 % confidence half-width (None for fewer than two seeds).

    Attributes:
        ends: the interval, where it is not symmetric; `half` is None then.
    """

    value: float
    half: float | None
    seeds: int
    ends: tuple[float, float] | None = None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Both ends of the interval, where there is one."""
        if self.half is None:
            return self.ends
        return self.value - self.half, self.value + self.half


def mean(values: Sequence[float], together: int = 1) -> Mean:
    """The mean of values with its 95 % half-width by Student's t.

    Args:
        together: the number of intervals, this one included, that hold simultaneously with 95 % confidence
            (Bonferroni).
    """
    return _mean(tuple(values), together)


@lru_cache(maxsize=10_000)  # a page shows the same scores under hundreds of filters
def _mean(values: tuple[float, ...], together: int) -> Mean:
    n = len(values)
    if n < 2:
        return Mean(fmean(values), None, n)
    return Mean(fmean(values), t_quantile(n - 1, together) * stdev(values) / math.sqrt(n), n)


@lru_cache(maxsize=1_000)
def t_quantile(degrees: int, together: int = 1) -> float:
    """The quantile of Student's t at 97.5 %, or at 1 − 0.025/together."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, above_most(together)))


def above_most(together: int = 1) -> float:
    """The level of the upper quantile of a 95 % interval, of several that hold simultaneously (Bonferroni)."""
    return 1 - 0.025 / together
