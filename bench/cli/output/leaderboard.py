"""The leaderboard in a terminal."""

from __future__ import annotations

import io
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fedarena.board.advice import advice, summary
from fedarena.board.board import Board
from fedarena.board.standing import Cut, Standing, standings
from fedarena.board.words import (
    HOW,
    NOTHING,
    asked,
    asked_problems,
    average,
    case,
    counts,
    labelled,
    made,
    notes,
    parties,
    reasons,
    score,
    seeds,
    several,
    times,
)

WIDE = 140
"""From this width on four tables are two."""
NAME = 20
"""Characters of a defense's name that are kept on one line, where there is room."""


def show(board: Board, cut: Cut, commands: Sequence[str], console: Console) -> None:
    """Print the ranking first, then what it means."""
    rows = standings(board, cut)

    def say(text: str, style: str = "") -> None:
        console.print(Text(text, style=style))

    say(board.title or board.suite, "bold")
    say(f"Threats: {asked(cut)}. {summary(board, cut, rows)}. Seeds: {seeds(board)}.")
    for a in asked_problems(board, cut):
        say(f"{a.name}: {a.told}")
    wide = console.width >= WIDE
    parts = [[_main, _worst], [_beside, _parties]] if wide else [[_main], [_worst], [_beside], [_parties]]
    for part in parts if rows else []:
        lines = [{name: text for make in part for name, text in make(board, cut, row).items()} for row in rows]
        if lines[0]:
            console.print(_table(rows, lines, wide))
    for line in reasons(rows):
        say(line)
    _list(console, "Which defense to take", advice(board, cut, rows))
    _list(console, "Notes", notes(board, cut, rows))
    _list(console, "How the scores are made", HOW)
    _list(console, "Commands", commands, whole=True)
    if made(board):
        say(f"\nMade from records of {made(board)}.")


def plain(board: Board, cut: Cut, commands: Sequence[str]) -> str:
    """The same as text without colours, for a file."""
    buffer = io.StringIO()
    show(board, cut, commands, Console(file=buffer, width=160, no_color=True))
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"


def _main(board: Board, cut: Cut, row: Standing) -> dict[str, Text]:
    found = {"overall": Text(score(row.overall), "bold")}
    found |= {axis: Text(score(getattr(row, axis))) for axis in cut.axes}
    return {**found, "bytes": Text(times(row.bytes)), "time": Text(times(row.seconds))}


def _worst(board: Board, cut: Cut, row: Standing) -> dict[str, Text]:
    axes = [axis for axis in cut.axes if axis != "utility"]
    return {f"worst case of {axis}": Text(case(getattr(row, axis), several(board))) for axis in axes}


def _beside(board: Board, cut: Cut, row: Standing) -> dict[str, Text]:
    axes = [axis for axis in cut.axes if axis != "utility"]
    found = {f"{axis},\npaper form": score(getattr(row, f"paper_{axis}")) for axis in axes}
    found |= {f"{axis},\nmean": average(getattr(row, axis)) for axis in axes}
    return {name: Text(value) for name, value in {**found, "cells": counts(row.counts)}.items()}


def _parties(board: Board, cut: Cut, row: Standing) -> dict[str, Text]:
    return {f"privacy:\n{party}": Text(score(row.by_party[party])) for party in parties(board, cut)}


def _table(rows: Sequence[Standing], lines: Sequence[dict[str, Text]], wide: bool) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_lines=False)
    table.add_column("#", justify="right")
    least = min(NAME, max(len(labelled(row)) for row in rows)) if wide else None
    table.add_column("defense", overflow="fold", min_width=least)
    for name in lines[0]:
        table.add_column(name, overflow="fold")
    for row, line in zip(rows, lines, strict=True):
        rank = Text(str(row.rank) if row.rank is not None else NOTHING)
        table.add_row(rank, Text(labelled(row), "bold"), *line.values(), style="dim" if row.rank is None else "")
    return table


def _list(console: Console, heading: str, lines: Sequence[str], whole: bool = False) -> None:
    """A heading and its lines; `whole` ones are never broken, so that they can be copied."""
    if lines:
        console.print(Text(f"\n{heading}", "bold"))
    for line in lines:
        console.print(Text(line), soft_wrap=whole)
