"""Numbers of defenses in rows: a name is beside its points, so that points cannot hide one another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fedarena.board.report.figure_style import INK, SHADE, label
from fedarena.core.text.numbers import Mean

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDE, TALL, LETTER, REST, LEAST = 2.6, 0.24, 0.08, 0.75, 1.5
"""Inches: a panel, a row, a letter of a name, the space above and below all rows, and the least height of a figure."""
MARGIN = 1.6
"""Factor between the outermost numbers and the edges of a logarithmic panel. Its square is more than 2.5, the largest
step between ticks, so that there is always a tick."""
AMID: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 7, "color": INK}


@dataclass(frozen=True)
class Panel:
    """One number of each defense.

    Attributes:
        title: the text below the panel.
        values: by name; a row without a value shows "not measured".
        log: whether values are positive numbers on a logarithmic axis; otherwise they are scores from 0 to 1.
        guide: the position of a grey line.
    """

    title: str
    values: Mapping[str, Mean]
    log: bool = False
    guide: float | None = None


def without_interval(values: Mapping[str, float]) -> dict[str, Mean]:
    """Numbers as means without an interval."""
    return {name: Mean(value, None, 1) for name, value in values.items()}


def in_rows(names: Sequence[str], panels: Sequence[Panel]) -> Figure:
    """Panels side by side with common rows, the first name on top."""
    from matplotlib.figure import Figure

    longest = max(len(label(name)) for name in names)
    size = (LETTER * longest + WIDE * max(1.5, len(panels)), max(LEAST, TALL * len(names) + REST))
    figure = Figure(figsize=size, layout="constrained")
    for axes, panel in zip(figure.subplots(1, len(panels), sharey=True, squeeze=False)[0], panels, strict=True):
        _panel(axes, names, panel)
    axes = figure.axes[0]
    axes.set_yticks(range(len(names)), [label(name) for name in names], fontsize=8)
    axes.set_ylim(len(names) - 0.4, -0.6)
    return figure


def _panel(axes: Axes, names: Sequence[str], panel: Panel) -> None:
    for y, name in enumerate(names):
        if name in panel.values:
            _point(axes, y, panel.values[name])
        else:
            axes.text(0.5, y, "not measured", transform=axes.get_yaxis_transform(), **AMID)
    if panel.guide is not None:
        axes.axvline(panel.guide, zorder=0, color=INK, linewidth=1.0)
    if panel.log:
        _logarithmic(axes, [m.value for m in panel.values.values()] + ([panel.guide] if panel.guide else []))
    else:
        axes.set_xlim(-0.02, 1.02)
    axes.set_xlabel(panel.title, fontsize=8)
    axes.grid(alpha=0.3)
    # Labels of powers of ten stand at the height of the labels between them.
    axes.tick_params(axis="x", which="both", labelsize=7, length=3, pad=3)
    axes.tick_params(axis="y", length=0)


def _point(axes: Axes, y: int, value: Mean) -> None:
    """A dot with its interval, clipped to [0, 1]."""
    at: dict[str, Any] = {"marker": "o", "markersize": 5, "color": SHADE, "capsize": 3, "linestyle": "none"}
    if value.interval is None:
        axes.errorbar([value.value], [y], **at)
        return
    low, high = max(0.0, value.interval[0]), min(1.0, value.interval[1])
    axes.errorbar([value.value], [y], xerr=[[value.value - low], [high - value.value]], **at)


def _logarithmic(axes: Axes, xs: Sequence[float]) -> None:
    axes.set_xscale("log", subs=[2, 5])
    if xs:
        axes.set_xlim(min(xs) / MARGIN, max(xs) * MARGIN)
    for ticks in (axes.xaxis.set_major_formatter, axes.xaxis.set_minor_formatter):
        ticks("{x:g}")
