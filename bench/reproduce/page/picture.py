"""The picture of the page shows the paper's number against ours, with a mark for each number."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from fedarena.core.text.figures import MARKERS, SHADES, save_png
from fedarena.core.text.numbers import Mean
from fedarena.reproduce.page.gather import Comparison
from fedarena.reproduce.page.verdict import ERRORS


def drawn(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The comparisons that a picture can show: both numbers are there and can be compared."""
    return [one for one in comparisons if one.difference is not None]


def alt(comparisons: Sequence[Comparison]) -> str:
    """What the picture shows, in numbers."""
    shares, others = _halves(comparisons)
    texts = []
    if shares:
        apart = [abs(one.difference or 0.0) for one in shares]
        texts.append(
            f"shares, ours against the paper's, around the diagonal: {_held(shares)}, half of them within "
            f"{median(apart):.3f} of it, the farthest {max(apart):.3f} away"
        )
    if others:
        ratios = [_ours(one) / _paper_s(one) for one in others]
        texts.append(
            f"other numbers on logarithmic axes: {_held(others)}, ours {min(ratios):.2g} to {max(ratios):.2g} times "
            "the paper's"
        )
    return "; ".join(texts)


def draw(comparisons: Sequence[Comparison], path: Path) -> None:
    """Draw shares on the left, other numbers on the right on logarithmic axes, as a PNG. Full marks are held, empty
    ones are not."""
    from matplotlib.figure import Figure

    papers = list(dict.fromkeys(_paper(one) for one in drawn(comparisons)))
    halves = dict(zip(("shares", "other numbers"), _halves(comparisons), strict=True))
    halves = {title: own for title, own in halves.items() if own}
    figure = Figure(figsize=(4.6 * len(halves), 4.9), dpi=110, layout="constrained")
    handles: dict[str, Any] = {}
    for axes, (title, own) in zip(
        figure.subplots(1, len(halves), squeeze=False).flatten(), halves.items(), strict=True
    ):
        for paper, handle in _draw_half(axes, title, own, papers).items():
            handles.setdefault(paper, handle)
    figure.suptitle("full: held; bars: two standard errors", fontsize=9)
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=len(handles), fontsize=8)
    save_png(figure, path)


def _draw_half(axes: Any, title: str, comparisons: Sequence[Comparison], papers: Sequence[str]) -> dict[str, Any]:
    """Draw one half; a handle for the legend for each paper in it."""
    every = [value for one in comparisons for value in (_paper_s(one), _ours(one))]
    ends = (0.0, 1.0) if title == "shares" else (min(every) / 1.3, max(every) * 1.3)
    axes.plot(ends, ends, color="grey", linewidth=0.9)
    handles: dict[str, Any] = {}
    for one in comparisons:
        i = papers.index(_paper(one))
        shade = SHADES[i % len(SHADES)]
        mark = axes.errorbar(
            x=_paper_s(one),
            y=_ours(one),
            yerr=ERRORS * (one.standard_error or 0.0) or None,
            fmt=MARKERS[i % len(MARKERS)],
            color=shade,
            markersize=6,
            markerfacecolor=shade if one.verdict == "held" else "none",
            capsize=2,
            linewidth=0.9,
        )
        handles.setdefault(papers[i], mark)
    if title != "shares":
        axes.set(xscale="log", yscale="log")
    axes.set(xlim=ends, ylim=ends, xlabel="the paper's", ylabel="ours", aspect="equal")
    axes.set_title(title, fontsize=10)
    axes.grid(alpha=0.3)
    return handles


def _halves(comparisons: Sequence[Comparison]) -> tuple[list[Comparison], list[Comparison]]:
    """Shares, and the others."""
    shown = drawn(comparisons)
    return [one for one in shown if one.published.share], [one for one in shown if not one.published.share]


def _held(comparisons: Sequence[Comparison]) -> str:
    return f"{sum(one.verdict == 'held' for one in comparisons)} of {len(comparisons)} held"


def _paper(one: Comparison) -> str:
    return one.table.partition("/")[0]


def _paper_s(one: Comparison) -> float:
    return float(one.published.paper)


def _ours(one: Comparison) -> float:
    assert isinstance(one.ours, Mean)
    return one.ours.value
