"""The table and the sentence that `bench run` prints."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from fedarena import goals
from fedarena.cli.output.pairing import closing, heading, numbered
from fedarena.cli.output.pairing_table import OF_SEVERAL, Cell, picked, table, verdict
from fedarena.core.text.mean import mean
from fedarena.core.text.numbers import number, quality
from fedarena.records.measure import measure_of
from fedarena.records.schema import Record


def show(records: Sequence[Record], defense: str, attack: str, folder: Path, picture: Path | None) -> None:
    """Print everything a person wants to know first."""
    console, rows = heading(records, defense, attack), table(records, defense)
    view = Table(box=box.SIMPLE_HEAD, show_lines=True)
    view.add_column("attacker")
    for column in next(iter(rows.values())):
        view.add_column(column)
    notes: list[str] = []
    for party, cells in rows.items():
        view.add_row(party, *(_text(cell, notes) for cell in cells.values()))
    console.print(view)
    numbered(console, notes)
    if any(cell is not None and picked(cell) for cells in rows.values() for cell in cells.values()):
        console.print(f"{OF_SEVERAL}.", highlight=False)
    for line in goals.find(records[0]["goal"]).baseline(records):
        console.print(line, highlight=False)
    _utility_and_cost(console, records, defense)
    closing(console, verdict(rows, records, defense, attack), records, folder, picture)


def _text(cell: Cell | None, notes: list[str]) -> str:
    if cell is None:
        return "not asked for"
    goal = goals.find(cell.goal)
    lines = goal.lines(cell)
    wording = goal.wording(list(cell.metrics))
    if picked(cell):
        lines += [f"{name}: {wording.outcome(o)}" for name, o in cell.beside if wording.metric in o.metrics]
    if "cosine" in cell.metrics and wording.metric != "cosine":
        lines.append(f"estimate: cosine {number(cell.metrics['cosine'])}")
    if cell.reading and len(lines):
        lines.append(f"[dim]by {cell.reading}[/dim]")
    if cell.status != "ok":
        if cell.reason not in notes:
            notes.append(cell.reason)
        lines.insert(0, f"{cell.status} ({notes.index(cell.reason) + 1})")
    return "\n".join(lines)


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
