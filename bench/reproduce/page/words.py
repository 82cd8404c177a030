"""The text of the page's cells."""

from __future__ import annotations

from fedarena.core.text.numbers import Mean
from fedarena.reproduce.page.gather import Comparison
from fedarena.reproduce.page.verdict import APART
from fedarena.reproduce.published import NOT_FOUND

ONE_SEED = "one seed"


def places(comparison: Comparison) -> int:
    """The number of decimals shown: one more than the paper prints, and at least four for a share."""
    more = comparison.published.decimals + 1
    return max(more, 4) if comparison.published.share else more


def number(comparison: Comparison) -> str:
    """Ours, as a number or in words."""
    ours = comparison.ours
    if isinstance(ours, Mean):
        return f"{ours.value:.{places(comparison)}f}"
    return ours or ""


def difference(comparison: Comparison) -> str:
    """Ours minus the paper's, with its sign."""
    return "" if comparison.difference is None else f"{comparison.difference:+.{places(comparison)}f}"


def standard_error(comparison: Comparison) -> str:
    """The standard error of the difference. Where ours has one seed, it is by the paper's spread, or there is none."""
    if comparison.difference is None:
        return ""
    error = comparison.standard_error
    if error is None:
        return ONE_SEED
    single = f", {ONE_SEED}" if len(comparison.seeds) == 1 else ""
    return f"{error:.{places(comparison)}f}{single}"


def setting(comparison: Comparison) -> str:
    """What was measured, with the remarks on it. What `--only` takes stands before the first semicolon."""
    published = comparison.published
    row = ", ".join(f"{name} {value}" for name, value in published.row if name != "paper")
    bounds = ""
    if published.within is not None:
        low, high = published.within
        bounds = f"taken as {low:g} or more" if high == float("inf") else f"taken as {low:g} to {high:g}"
    parts = published.selected, row, published.remark, bounds, comparison.reason
    return "; ".join(part for part in parts if part)


def why(comparison: Comparison) -> str:
    """Why ours does not come back, or cannot be compared; "" where nothing is to be explained."""
    if comparison.verdict in APART:
        row = f" (see `{comparison.shown_by}`)" if comparison.shown_by else ""
        if comparison.in_part:
            return f"in part, {comparison.cause} (nearer in `{comparison.shown_by}`); for the rest, {NOT_FOUND}"
        return f"{comparison.cause}{row}" if comparison.cause else NOT_FOUND
    return comparison.published.apart if comparison.verdict == "not comparable" else ""


def seeds(comparison: Comparison) -> str:
    """The seeds by number: `0, 1, 2`, or `0 to 9` for more than three in a row."""
    own = comparison.seeds
    if len(own) > 3 and own == tuple(range(own[0], own[0] + len(own))):
        return f"{own[0]} to {own[-1]}"
    return ", ".join(map(str, own))


def duration(seconds: float | None) -> str:
    """The time in seconds, minutes or hours, whichever is read most easily."""
    if seconds is None:
        return "unknown"
    if seconds < 99.5:
        return f"{seconds:.0f} s" if seconds >= 9.95 else f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5970 else f"{seconds / 3600:.1f} h"
