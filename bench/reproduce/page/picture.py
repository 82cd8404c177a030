"""The picture of fidelity: the paper's number against ours, a mark a number."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from fedarena.core.files import write_atomically
from fedarena.core.text.figures import MARKERS, SHADES
from fedarena.core.text.mean import Mean
from fedarena.reproduce.page.gather import Line


def drawn(lines: Sequence[Line]) -> list[Line]:
    """Those that a picture can show: both numbers are there and can be compared."""
    return [line for line in lines if line.difference is not None]


def alt(lines: Sequence[Line]) -> str:
    """What the picture shows, in numbers."""
    shares = [line for line in drawn(lines) if line.published.share]
    others = [line for line in drawn(lines) if not line.published.share]
    told = []
    if shares:
        apart = [abs(line.difference or 0.0) for line in shares]
        told.append(
            f"shares, ours against the paper's, around the diagonal: {_held(shares)}, half of them within "
            f"{median(apart):.3f} of it, the farthest {max(apart):.3f} away"
        )
    if others:
        ratios = [_value(line) / float(line.published.paper) for line in others]
        told.append(
            f"other numbers on logarithmic axes: {_held(others)}, ours {min(ratios):.2g} to {max(ratios):.2g} times "
            "the paper's"
        )
    return "; ".join(told)


def _held(lines: Sequence[Line]) -> str:
    return f"{sum(line.verdict == 'held' for line in lines)} of {len(lines)} held"


def draw(lines: Sequence[Line], path: Path) -> None:
    """Shares left, all others right on logarithmic axes; written as a PNG. Full marks are held, empty ones are not."""
    from matplotlib.figure import Figure

    shown = drawn(lines)
    papers = list(dict.fromkeys(line.table.partition("/")[0] for line in shown))
    halves = [
        ("shares", [line for line in shown if line.published.share]),
        ("other numbers", [line for line in shown if not line.published.share]),
    ]
    halves = [(title, own) for title, own in halves if own]
    figure = Figure(figsize=(4.6 * len(halves), 4.9), dpi=110, layout="constrained")
    handles: dict[str, Any] = {}
    for axes, (title, own) in zip(figure.subplots(1, len(halves), squeeze=False).flatten(), halves, strict=True):
        every = [v for line in own for v in (float(line.published.paper), _value(line))]
        ends = (0.0, 1.0) if title == "shares" else (min(every) / 1.3, max(every) * 1.3)
        axes.plot(ends, ends, color="grey", linewidth=0.9)
        for line in own:
            i = papers.index(line.table.partition("/")[0])
            shade, found = SHADES[i % len(SHADES)], line.found
            bar = found.half if isinstance(found, Mean) else None
            drawn_one = axes.errorbar(
                *(float(line.published.paper), _value(line)),
                yerr=bar,
                fmt=MARKERS[i % len(MARKERS)],
                color=shade,
                markersize=6,
                markerfacecolor=shade if line.verdict == "held" else "none",
                capsize=2,
                linewidth=0.9,
            )
            handles.setdefault(papers[i], drawn_one)
        if title != "shares":
            axes.set(xscale="log", yscale="log")
        axes.set(xlim=ends, ylim=ends, xlabel="the paper's", ylabel="ours", aspect="equal")
        axes.set_title(title, fontsize=10)
        axes.grid(alpha=0.3)
    figure.suptitle("full: held; bars: 95 % intervals over seeds", fontsize=9)
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=len(handles), fontsize=8)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    write_atomically(path, buffer.getvalue())


def _value(line: Line) -> float:
    assert isinstance(line.found, Mean)
    return line.found.value
