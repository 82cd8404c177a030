"""Prints rows as a table, or one below the other where a terminal is too narrow to show every word whole."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from fedarena.cli.output.terminal import Terminal, joined

READABLE = 16
"""Characters below which a column of cells of several lines is no pleasure to read."""


def show_rows(console: Terminal, titles: Sequence[str], rows: Sequence[Sequence[str]], *, ruled: bool = False) -> None:
    """Print them. Below each other, a row begins with its first cell; each further one has its title before it.

    Args:
        ruled: with lines between rows, and columns that leave room to read, for cells of several lines.
    """
    rows = [[joined(cell) for cell in row] for row in rows]
    table = Table(box=box.SIMPLE_HEAD if ruled else None, show_lines=ruled, pad_edge=ruled, header_style="bold")
    for title, *cells in zip(titles, *rows, strict=True):
        least = max(map(longest_word, (title, *cells)))
        longest = max((len(line) for cell in cells for line in cell.splitlines()), default=0)
        # Rich narrows the widest column that may wrap, whatever its least width, and then cuts the last one.
        single = least >= max(longest, len(title))
        table.add_column(
            title, overflow="fold", no_wrap=single, min_width=max(least, min(READABLE, longest) if ruled else 0)
        )
    for row in rows:
        table.add_row(*map(Text, row))
    if console.measure(table, options=console.options.update(width=10_000)).minimum <= console.width:
        console.print(table)
        return
    for first, *others in rows:
        console.print(Text(f"\n{titles[0]}: {first}" if ruled else first, "bold"))
        for title, cell in zip(titles[1:], others, strict=True):
            if "\n" in cell:
                console.print(Text(f"  {title}:"), *(Padding(Text(x), (0, 0, 0, 4)) for x in cell.splitlines()))
            elif cell and cell != "-":
                console.print(Text(f"  {title}: {cell}"), soft_wrap=len(cell) > console.width and " " not in cell)
    if ruled:
        console.print()


def longest_word(text: str) -> int:
    """Its letters; 0 where there is no word."""
    return max(map(len, text.split()), default=0)
