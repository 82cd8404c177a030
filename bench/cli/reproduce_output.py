"""What `bench reproduce` shows."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table


@contextmanager
def progress_line(quiet: bool) -> Iterator[Callable[[float, str], None]]:
    """One bar on stderr."""
    if quiet:
        yield lambda share, text: None
        return
    columns = TextColumn("{task.percentage:3.0f} %"), BarColumn(bar_width=30), TextColumn("{task.description}")
    with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=Console(file=sys.stderr)) as bars:
        task = bars.add_task("", total=1.0)
        yield lambda share, text: bars.update(task, completed=share, description=text)


def show(result: dict[str, Any], path: Path) -> None:
    """Print the rows as a table, in the order of their keys."""
    console = Console(width=None if sys.stdout.isatty() else 160)
    console.print(f"[bold]{result['table']}[/bold]: {result['setting']}", highlight=False)
    view = Table(box=box.SIMPLE_HEAD)
    for name in result["rows"][0]:
        view.add_column(str(name).replace("_", " "))
    for row in result["rows"]:
        view.add_row(*(_text(value) for value in row.values()))
    console.print(view)
    console.print(f"Written to {path}", markup=False, highlight=False, soft_wrap=True)


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return str(value)
