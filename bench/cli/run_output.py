"""The table and the sentence that `bench run` prints."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from fedarena.cli import goal_output
from fedarena.cli.pairing_output import closing, heading, number, numbered
from fedarena.percent import measure_of, percent, quality
from fedarena.records import Record
from fedarena.summary import COLUMNS, Cell, mean, table, verdict


def show(records: Sequence[Record], defense: str, attack: str, folder: Path, picture: Path | None) -> None:
    """Print everything a person wants to know first."""
    console, rows = heading(records, defense, attack), table(records, defense)
    columns = COLUMNS if defense != "fedavg" else COLUMNS[1:]
    view = Table(box=box.SIMPLE_HEAD, show_lines=True)
    view.add_column("attacker")
    for column in columns:
        view.add_column(column)
    notes: list[str] = []
    for party, cells in rows.items():
        view.add_row(party, *(_text(cells[column], notes) for column in columns))
    console.print(view)
    numbered(console, notes)
    _baselines(console, records)
    _utility_and_cost(console, records, defense)
    closing(console, verdict(rows, records, defense, attack), records, folder, picture)


def _text(cell: Cell | None, notes: list[str]) -> str:
    if cell is None:
        return "not asked for"
    lines = goal_output.lines(cell)
    if "recovered" in cell.metrics:
        lines.append(f"recovered {percent(cell.metrics['recovered'])}")
        psnr = f"PSNR {cell.metrics['psnr'].value:.1f} dB"
        lines.append(f"SSIM {number(cell.metrics['ssim'])}, {psnr}" if "ssim" in cell.metrics else psnr)
        if "label_accuracy" in cell.metrics:
            lines.append(f"labels {percent(cell.metrics['label_accuracy'])}")
        else:
            lines.append(f"labels off by {number(cell.metrics['label_error'])}")
    if "cosine" in cell.metrics:
        lines.append(f"estimate: cosine {number(cell.metrics['cosine'])}")
    if cell.reading and len(lines):
        lines.append(f"[dim]by {cell.reading}[/dim]")
    if cell.status != "ok":
        if cell.reason not in notes:
            notes.append(cell.reason)
        lines.insert(0, f"{cell.status} ({notes.index(cell.reason) + 1})")
    return "\n".join(lines)


def _baselines(console: Console, records: Sequence[Record]) -> None:
    if line := goal_output.baseline(records):
        console.print(line, highlight=False)
    having = [r["metrics"] for r in records if "prior_mean_mse" in r["metrics"]]
    if not having:
        return

    def of(name: str) -> float:
        return mean([m[name] for m in having]).value

    parts, rows = [], "prior_mean_ssim" not in having[0]
    for name, title in (("prior_mean", "the mean training"), ("prior_nearest", "the nearest training")):
        like = f"row has PSNR {of(f'{name}_psnr'):.1f} dB" if rows else f"image has SSIM {of(f'{name}_ssim'):.2f}"
        parts.append(f"{title} {like} and counts as recovered for {100 * of(f'{name}_recovered'):.0f} %")
    if "prior_label_error" in having[0]:
        parts.append(f"the median training label is off by {of('prior_label_error'):.2f}")
    console.print(f"Without any attack: {'; '.join(parts)}.", highlight=False)
    if rows:
        console.print("Rows of a table count as recovered from 30 dB on, and are not drawn.", highlight=False)


def _utility_and_cost(console: Console, records: Sequence[Record], defense: str) -> None:
    def of(name: str) -> list[Record]:
        return list({r["seed"]: r for r in records if r["defense"] == name}.values())

    for name in dict.fromkeys(("fedavg", defense)):
        runs = of(name)
        reached = quality(mean([r["utility"]["clean_accuracy"] for r in runs]), measure_of(runs))
        cost = [r["cost"] for r in runs]
        up, down, peak = (mean([c[k] for c in cost]).value for k in ("bytes_up", "bytes_down", "peak_bytes"))
        slower = mean([c["relative_seconds"] or 0.0 for c in cost]).value
        console.print(
            f"{name}: {reached}; per client and round {_bytes(up)} up, {_bytes(down)} down; "
            f"training time {slower:.2f} x FedAvg's; a client's peak {_bytes(peak)}",
            highlight=False,
        )


def _bytes(n: float) -> str:
    return f"{n / 1e6:.2f} MB" if n >= 1e6 else f"{n / 1e3:.1f} kB"
