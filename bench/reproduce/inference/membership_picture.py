"""The picture of `fedarena.reproduce.inference.membership_lira`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fedarena.core.text.figures import SHADES, STYLES, save_png


@dataclass(frozen=True)
class RocCurve:
    """Shares of members found over false positive rates."""

    x: Sequence[float]
    y: Sequence[float]


@dataclass(frozen=True)
class Panel:
    """One model's ROC curves, by name."""

    title: str
    lines: Mapping[str, RocCurve]


def draw_panels(panels: Sequence[Panel], path: Path) -> None:
    """Panels side by side, four a line, on common logarithmic axes, with the diagonal of chance; written as a PNG."""
    from matplotlib.figure import Figure

    wide = min(4, len(panels))
    deep = -(-len(panels) // wide)
    figure = Figure(figsize=(3.2 * wide + 0.6, 3.0 * deep + 1.0), dpi=110, layout="constrained")
    grid = figure.subplots(deep, wide, squeeze=False, sharex=True, sharey=True).flatten()
    for axes, panel in zip(grid, panels, strict=False):
        axes.loglog([1e-3, 1], [1e-3, 1], color="grey", linewidth=0.8, label="chance")
        for i, (name, line) in enumerate(panel.lines.items()):
            style, shade = STYLES[i % len(STYLES)], SHADES[i % len(SHADES)]
            axes.loglog(line.x, line.y, style, marker="o", markersize=3, color=shade, linewidth=1.4, label=name)
        axes.set_title(panel.title, fontsize=9)
        axes.set(xlabel="false positive rate", ylabel="members found", xlim=(8e-4, 1.1), ylim=(8e-4, 1.1))
        axes.grid(alpha=0.3)
    for axes in grid[len(panels) :]:
        axes.set_axis_off()
    figure.legend(*grid[0].get_legend_handles_labels(), loc="outside lower center", ncols=min(3, wide), fontsize=8)
    save_png(figure, path)
