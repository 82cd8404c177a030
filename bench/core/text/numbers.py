"""Shares, numbers and the quality of models as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fedarena.core.text.mean import Mean


def percent(m: Mean) -> str:
    """A share in percent, as `share`: "43 ± 5 %"."""
    return share(m, lambda value: f"{100 * value:.0f}", " %")


def share(m: Mean, shown: Callable[[float], str] = "{:.2f}".format, unit: str = "") -> str:
    """A share with its interval: "0.43 ± 0.05", or "0.43" for one seed.

    An interval that goes beyond [0, 1] is cut to it and given by its ends: "0.98 (0.91 to 1.00)".
    """
    if m.half is None:
        return f"{shown(m.value)}{unit}"
    low, high = m.value - m.half, m.value + m.half
    if low < 0 or high > 1:
        return f"{shown(m.value)}{unit} ({shown(max(0.0, low))} to {shown(min(1.0, high))}{unit})"
    return f"{shown(m.value)} ± {shown(m.half)}{unit}"


def number(m: Mean) -> str:
    """A number with its interval."""
    return f"{m.value:.2f}" + (f" ± {m.half:.2f}" if m.half is not None else "")


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
