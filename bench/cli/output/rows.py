"""Prints rows as a table, or one below the other where a terminal is too narrow to show every word whole."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

GAP = 2
"""Characters between two columns."""


def show_rows(console: Console, titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print them. Below each other, a row begins with its first cell; each further one has its title before it."""
    least = [max(map(longest_word, column)) for column in zip(titles, *rows, strict=True)]
    if sum(least) + GAP * (len(least) - 1) <= console.width:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for title, width in zip(titles, least, strict=True):
            table.add_column(title, overflow="fold", min_width=width)
        for row in rows:
            table.add_row(*(Text(cell) for cell in row))
        console.print(table)
        return
    for first, *others in rows:
        console.print(Text(first, "bold"))
        for title, cell in zip(titles[1:], others, strict=True):
            if cell and cell != "-":
                console.print(Text(f"  {title}: {cell}"), soft_wrap=len(cell) > console.width and " " not in cell)


def longest_word(text: str) -> int:
    """Its letters; 0 where there is no word."""
    return max(map(len, text.split()), default=0)
