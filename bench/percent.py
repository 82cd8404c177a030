"""How shares and numbers are printed, and how good a model is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fedarena.records import Record
    from fedarena.summary import Mean


def percent(m: Mean) -> str:
    """A share in percent with its interval; where Student's goes beyond [0, 1], cut to it and given by its ends."""
    value = f"{100 * m.value:.0f}"
    if m.half is None:
        return f"{value} %"
    low, high = m.value - m.half, m.value + m.half
    if low < 0 or high > 1:
        return f"{value} % ({100 * max(0.0, low):.0f} to {100 * min(1.0, high):.0f} %)"
    return f"{value} ± {100 * m.half:.0f} %"


def number(m: Mean) -> str:
    """A number with its interval."""
    return f"{m.value:.2f}" + (f" ± {m.half:.2f}" if m.half is not None else "")


MEASURES = {"accuracy": "accuracy", "R2": "R²"}
"""What `fedarena.criterion.Criterion.measure` is called in print."""


def measure_of(records: Sequence[Record]) -> str:
    """What the quality of these records' models is; one that does not say has accuracies."""
    return str(records[0]["utility"].get("measure", "accuracy"))


def level(m: Mean, measure: str) -> str:
    """How good a model is, without the measure's name: an accuracy in percent, or R² as a number with its interval."""
    if measure != "R2":
        return percent(m)
    value = f"{m.value:.2f}" if m.value > -100 else "below -100"
    return value + (f" ± {m.half:.2f}" if m.half is not None and m.value > -100 else "")


def quality(m: Mean, measure: str) -> str:
    """How good a model is, as "accuracy 97 %" or "R² 0.45"."""
    return f"{MEASURES[measure]} {level(m, measure)}"
