"""The text of the page's cells."""

from __future__ import annotations

from fedarena.core.text.numbers import Mean
from fedarena.reproduce.page.gather import Comparison


def places(comparison: Comparison) -> int:
    """The number of decimals shown: one more than the paper prints, and at least four for a share."""
    more = comparison.published.decimals + 1
    return max(more, 4) if comparison.published.share else more


def number(comparison: Comparison) -> str:
    """Ours, as a number or in words."""
    ours = comparison.ours
    if isinstance(ours, Mean):
        return f"{ours.value:.{places(comparison)}f}"
    return ours or "-"


def interval(comparison: Comparison) -> str:
    """The 95 % interval over several seeds. Of the interval of a share, the part in [0, 1] is shown."""
    ours, decimals = comparison.ours, places(comparison)
    if not isinstance(ours, Mean):
        return "-"
    if ours.half is None:
        return "one seed"
    low, high = ours.value - ours.half, ours.value + ours.half
    if comparison.published.share:
        low, high = max(low, 0.0), min(high, 1.0)
    return f"{low:.{decimals}f} to {high:.{decimals}f}"


def difference(comparison: Comparison) -> str:
    """Ours minus the paper's, with its sign."""
    return "-" if comparison.difference is None else f"{comparison.difference:+.{places(comparison)}f}"


def setting(comparison: Comparison) -> str:
    """What was measured, with the remarks on it."""
    published = comparison.published
    bounds = ""
    if published.within is not None:
        low, high = published.within
        bounds = f"taken as {low:g} or more" if high == float("inf") else f"taken as {low:g} to {high:g}"
    return "; ".join(
        part for part in (published.setting, published.remark, bounds, published.apart, comparison.reason) if part
    )


def seeds(comparison: Comparison) -> str:
    """The seeds by number."""
    return ", ".join(map(str, comparison.seeds))


def duration(seconds: float | None) -> str:
    """The time in seconds, minutes or hours, whichever is read most easily."""
    if seconds is None:
        return "unknown"
    if seconds < 99.5:
        return f"{seconds:.0f} s" if seconds >= 9.95 else f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5970 else f"{seconds / 3600:.1f} h"
