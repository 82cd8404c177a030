"""Numbers of the page in words."""

from __future__ import annotations

from fedarena.core.text.mean import Mean
from fedarena.reproduce.page.gather import Line


def places(line: Line) -> int:
    """Digits after the point: one more than the paper prints, and of shares enough to see which side of a point."""
    more = line.published.decimals + 1
    return max(more, 4) if line.published.share else more


def number(line: Line) -> str:
    """Ours."""
    found = line.found
    if isinstance(found, Mean):
        return f"{found.value:.{places(line)}f}"
    return found or "-"


def interval(line: Line) -> str:
    """The 95 % interval over seeds, where there are several; of a share what of it lies in [0, 1]."""
    found, decimals = line.found, places(line)
    if not isinstance(found, Mean):
        return "-"
    if found.half is None:
        return "one seed"
    low, high = found.value - found.half, found.value + found.half
    if line.published.share:
        low, high = max(low, 0.0), min(high, 1.0)
    return f"{low:.{decimals}f} to {high:.{decimals}f}"


def difference(line: Line) -> str:
    """Ours less the paper's, with its sign."""
    return "-" if line.difference is None else f"{line.difference:+.{places(line)}f}"


def setting(line: Line) -> str:
    """What was measured, and what is to be known of it."""
    published = line.published
    bounds = ""
    if published.within is not None:
        low, high = published.within
        bounds = f"taken as {low:g} or more" if high == float("inf") else f"taken as {low:g} to {high:g}"
    return "; ".join(
        part for part in (published.setting, published.remark, bounds, published.apart, line.reason) if part
    )


def seeds(line: Line) -> str:
    """The seeds by number."""
    return ", ".join(map(str, line.seeds))


def duration(seconds: float | None) -> str:
    """Seconds, minutes or hours, whichever is read most easily."""
    if seconds is None:
        return "unknown"
    if seconds < 99.5:
        return f"{seconds:.0f} s" if seconds >= 9.95 else f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5970 else f"{seconds / 3600:.1f} h"
