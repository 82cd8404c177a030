"""What `bench reproduce` shows."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from rich import box
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from fedarena.cli.output.terminal import Terminal, stdout_width

if TYPE_CHECKING:
    from fedarena.reproduce.page.gather import Gathered
    from fedarena.reproduce.page.parts import PartKey
    from fedarena.reproduce.table import Compact, Row


@contextmanager
def progress_line(quiet: bool) -> Iterator[Callable[[float, str], None]]:
    """One bar on stderr."""
    if quiet:
        yield lambda share, text: None
        return
    columns = TextColumn("{task.percentage:3.0f} %"), BarColumn(bar_width=30), TextColumn("{task.description}")
    with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=Terminal(file=sys.stderr)) as bars:
        task = bars.add_task("", total=1.0)
        yield lambda share, text: bars.update(task, completed=share, description=text)


def laid_out(
    result: Mapping[str, Any], measured: Sequence[str], compact: Compact | None = None
) -> tuple[list[str], list[list[str]], list[str]]:
    """The headings of a table, its rows in the order of their keys, and the notes below it.

    Over several seeds, a cell is the mean with the least and the largest value.

    Args:
        compact: the table's own layout, if it has one.
    """
    notes: list[str] = []
    if compact is not None:
        rows, notes = compact(result["rows"])
    else:
        rows = over_seeds(result["rows"], measured) if measured else result["rows"]
    heads = [str(name).replace("_", " ") for name in rows[0]]
    return heads, [[_text(value) for value in row.values()] for row in rows], notes


def show(result: Mapping[str, Any], measured: Sequence[str], path: Path, compact: Compact | None = None) -> None:
    """Print the table; for the arguments see `laid_out`."""
    heads, rows, notes = laid_out(result, measured, compact)
    view = Table(box=box.SIMPLE_HEAD)
    for head in heads:
        view.add_column(head)
    for row in rows:
        view.add_row(*row)
    # A pipe has no width to fit, so rows are not broken there.
    console = Terminal(width=stdout_width(max(160, Terminal(width=10_000).measure(view).maximum)))
    console.print(f"[bold]{result['table']}[/bold]: {result['setting']}", highlight=False)
    console.print(view)
    for note in notes:
        console.print(note, markup=False, highlight=False)
    console.print(f"Written to {path}", markup=False, highlight=False, soft_wrap=True)


def show_all(gathered: Gathered, failed: Mapping[PartKey, str], page: Path) -> None:
    """Print the number of results by table and verdict, what is missing, and where the page is."""
    console = Terminal(width=stdout_width(160))
    console.print(_tallies(gathered))
    lines = [f"{key.name}: {reason}" for key, reason in failed.items()]
    lines += [*gathered.complaints, *_missing(gathered), f"Written to {page}"]
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _tallies(gathered: Gathered) -> Table:
    """The number of results, with a row for each table and a column for each verdict."""
    from fedarena.reproduce.page.tallies import counts

    tallies = {table: counts(own) for table, own in gathered.comparisons.items()}
    tallies["all"] = counts(gathered.all)
    view = Table(box=box.SIMPLE_HEAD)
    view.add_column("table")
    view.add_column("lines", justify="right")
    for verdict in tallies["all"]:
        view.add_column(verdict, justify="right")
    for table, tally in tallies.items():
        view.add_row(table, str(sum(tally.values())), *(str(n or "") for n in tally.values()))
    return view


def _missing(gathered: Gathered) -> list[str]:
    """A line that says what is missing; empty if nothing is."""
    from fedarena.reproduce.page.front import missing
    from fedarena.reproduce.page.order import expected

    if not gathered.missing:
        return []
    times = [expected(key, gathered.times) for key in gathered.missing]
    known = [t for t in times if t is not None]
    return [f"{missing(len(times), known)} `bench reproduce --all --measure --within 30` measures for half an hour"]


def over_seeds(rows: Sequence[Row], measured: Sequence[str]) -> list[Row]:
    """One row per setting: a measured column becomes its mean, followed by [least, largest] for several seeds.

    Notes do not distinguish settings; a row has the notes of all of its seeds. Without any note, the column is left
    out.
    """
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        setting = tuple((k, v) for k, v in row.items() if k not in (*measured, "seed", "note"))
        groups.setdefault(setting, []).append(row)
    noted = any(row.get("note") for row in rows)
    return [_merged(dict(setting), own, measured, noted) for setting, own in groups.items()]


def _merged(setting: Row, rows: Sequence[Row], measured: Sequence[str], noted: bool) -> Row:
    """One row of all seeds."""
    one = setting | {"seeds": len(rows)}
    for name in measured:
        one[name] = _spread([row[name] for row in rows if row.get(name) is not None])
    if noted:
        one["note"] = "; ".join(dict.fromkeys(row["note"] for row in rows if row.get("note")))
    return one


def _spread(values: Sequence[float]) -> str | None:
    if not values:
        return None
    text = _text(fmean(values))
    return text if len(values) == 1 else f"{text} [{_text(min(values))}, {_text(max(values))}]"


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return str(value)
