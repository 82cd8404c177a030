"""The picture of `fedarena.reproduce.pbpfl.precision`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fedarena.core.text.figures import SHADES, save_png


@dataclass(frozen=True)
class ErrorCurve:
    """Errors over powers of ten: measured, and as predicted from the digits lost."""

    x: Sequence[float]
    measured: Sequence[float]
    predicted: Sequence[float]


@dataclass(frozen=True)
class Panel:
    """One network's lines, by name."""

    title: str
    lines: Mapping[str, ErrorCurve]


def draw_panels(panels: Sequence[Panel], guard: float, path: Path) -> None:
    """Panels side by side, two a line, on common logarithmic axes; written as a PNG.

    Args:
        guard: the predicted error from which runs are marked.
    """
    from matplotlib.figure import Figure

    lines = -(-len(panels) // 2)
    figure = Figure(figsize=(10.0, 3.6 * lines + 0.8), dpi=110, layout="constrained")
    grid = figure.subplots(lines, 2, squeeze=False, sharex=True, sharey=True).flatten()
    for axes, panel in zip(grid, panels, strict=False):
        for (name, line), shade in zip(panel.lines.items(), SHADES, strict=False):
            axes.semilogy(line.x, line.measured, "o-", color=shade, markersize=3, linewidth=1.4, label=name)
            axes.semilogy(line.x, line.predicted, ":", color=shade, linewidth=1.2)
        axes.axhline(guard, color="grey", linestyle="--", linewidth=1.0)
        axes.text(
            0.99, guard, "marked above", ha="right", va="bottom", fontsize=7, transform=axes.get_yaxis_transform()
        )
        axes.set_title(panel.title, fontsize=9)
        axes.set(xlabel="decades of r, or log10 of γ's scale", ylabel="relative error of the gradient")
        axes.grid(alpha=0.3)
    for axes in grid[len(panels) :]:
        axes.set_axis_off()
    names = grid[0].get_legend_handles_labels()
    title = "measured; dotted: predicted from the digits lost"
    figure.legend(*names, loc="outside lower center", ncols=3, fontsize=8, title=title, title_fontsize=8)
    save_png(figure, path)
