"""Pieces of sentences about metrics, from which goals make their texts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean

from torch import Tensor

from fedarena.goals.cell import Cell
from fedarena.goals.metrics.membership import TOGETHER
from fedarena.records.schema import Record


def target_of(target: Mapping[str, Tensor]) -> str:
    """How much was seen."""
    return f"{len(target)} tensors, {sum(t.numel() for t in target.values()):,} numbers"


def percent_of(name: str) -> Callable[[Cell], str]:
    """A share in whole percent."""
    return lambda c: f"{100 * c.metrics[name].value:.0f} %"


def interval(c: Cell, name: str) -> tuple[float, float] | None:
    """The 95 % interval of a share, or None.

    Of one seed it is the judge's. Of several it is Student's over them, or what the judge's intervals of each leave
    open of their mean, on either side a √seeds-th of their mean width, where that is wider: seeds that happen to agree,
    as all do near certainty, make nothing certain. Of several readings it is the one that holds for all of them.
    """
    kind = TOGETHER if f"{name}_low{TOGETHER}" in c.metrics else ""
    value, low, high = c.metrics[name], c.value(f"{name}_low{kind}"), c.value(f"{name}_high{kind}")
    share, half = math.sqrt(value.seeds), value.half or 0.0
    if low is None or high is None:
        return None if value.half is None else (max(0.0, value.value - half), min(1.0, value.value + half))
    below, above = max(half, (value.value - low) / share), max(half, (high - value.value) / share)
    return max(0.0, value.value - below), min(1.0, value.value + above)


def auc(c: Cell, unclear: str = "") -> str:
    """AUC with its interval, and where chance lies in that, `unclear`."""
    value, ends = f"AUC {c.metrics['auc'].value:.2f}", interval(c, "auc")
    if ends is None:
        return value
    return f"{value} ({ends[0]:.2f} to {ends[1]:.2f}{unclear if ends[0] <= 0.5 <= ends[1] else ''})"


def values(records: Sequence[Record], name: str) -> list[float]:
    """A metric of the records that have it."""
    return [r["metrics"][name] for r in records if name in r["metrics"]]


def average(records: Sequence[Record], name: str) -> float:
    """Its mean over them."""
    return fmean(values(records, name))


def span(numbers: Sequence[float]) -> str:
    """'12', or '12 to 1,200'."""
    low, high = f"{min(numbers):,.0f}", f"{max(numbers):,.0f}"
    return low if low == high else f"{low} to {high}"
