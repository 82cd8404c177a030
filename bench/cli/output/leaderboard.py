"""Prints a leaderboard in a terminal."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from fedarena.board.leaderboard import Leaderboard, LeaderboardRow
from fedarena.cli.output.rows import show_rows
from fedarena.cli.output.terminal import Terminal

WIDE = 140
"""The width of a terminal from which on four tables become three."""
NAME = 20
"""Characters of a defense's name that stay on one line."""
LINE = 16
"""Characters of a cell that stay on one line in a narrow terminal; longer ones break between words."""
PADDING = 3
"""Characters between two columns."""

Part = Callable[[Leaderboard, LeaderboardRow], dict[str, Text]]
"""Heading → cell of one defense, for a few columns of the ranking."""


def show(leaderboard: Leaderboard, commands: Sequence[str], console: Terminal) -> None:
    """Print the ranking first, then what it means."""

    def say(text: str, style: str = "") -> None:
        console.print(Text(text, style=style))

    say(leaderboard.title, "bold")
    say(f"Threats: {leaderboard.threats}. {leaderboard.summary}. Seeds: {leaderboard.seeds}.")
    for line in leaderboard.problems:
        say(line)
    say(leaderboard.rule)
    _show_tables(leaderboard, console)
    _show_beside(leaderboard, console)
    for line in leaderboard.unranked:
        say(line)
    _list(console, "Which defense to take", leaderboard.advice)
    _list(console, "Notes", leaderboard.notes)
    _list(console, "How the scores are made", leaderboard.how)
    _list(console, "Commands", commands, whole=True)
    if leaderboard.provenance:
        say(f"\nMade from records of {leaderboard.provenance}.")


def plain(leaderboard: Leaderboard, commands: Sequence[str]) -> str:
    """The same as text without colours, for a file."""
    buffer = io.StringIO()
    show(leaderboard, commands, Terminal(file=buffer, width=160, no_color=True))
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"


def _show_tables(leaderboard: Leaderboard, console: Terminal) -> None:
    wide = console.width >= WIDE
    narrow: list[list[Part]] = [[_scores], [_worst_cases], [_paper_and_means], [_parties]]
    for parts in [narrow[0], narrow[1], narrow[2] + narrow[3]] if wide else narrow:
        lines = [
            {heading: text for part in parts for heading, text in part(leaderboard, row).items()}
            for row in leaderboard.rows
        ]
        if not lines or not lines[0]:
            continue
        if wide:
            console.print(_table(leaderboard.rows, lines, {}))
            continue
        lines = [{heading: _on_two_lines(text) for heading, text in line.items()} for line in lines]
        for widths in _that_fit(leaderboard.rows, lines, console.width):
            console.print(_table(leaderboard.rows, [{name: line[name] for name in widths} for line in lines], widths))


def _on_two_lines(text: Text) -> Text:
    """A score with its interval below it, so that columns are narrow and no word is broken."""
    return Text(text.plain.replace(" (", "\n("), text.style)


def _that_fit(rows: Sequence[LeaderboardRow], lines: Sequence[dict[str, Text]], width: int) -> Iterator[dict[str, int]]:
    """Heading → least width of its column, for as many columns as fit beside rank and name, and then for the rest."""
    names = max(len(str(row.rank)) for row in rows) + PADDING + min(NAME, max(len(row.defense) for row in rows))
    group: dict[str, int] = {}
    for heading in lines[0]:
        least = max(map(_least_width, (heading, *(line[heading].plain for line in lines))))
        if group and names + sum(PADDING + w for w in (*group.values(), least)) > width:
            yield group
            group = {}
        group[heading] = least
    yield group


def _least_width(text: str) -> int:
    """The longest line that must not be broken, or the longest word of a line that may be."""
    return max(
        (len(part) for line in text.split("\n") for part in ([line] if len(line) <= LINE else line.split())), default=0
    )


def _show_beside(leaderboard: Leaderboard, console: Terminal) -> None:
    """What can be had without a federation, and what nodes reach without a server; nothing of what was not measured."""
    for introduction, headings, lines in leaderboard.beside.values():
        if lines:
            console.print(Text(introduction))
            show_rows(console, headings, lines)
            console.print()


def _scores(leaderboard: Leaderboard, row: LeaderboardRow) -> dict[str, Text]:
    axes = {axis: Text(row.cells[axis].text) for axis in leaderboard.axes}
    deciding, *beside = leaderboard.deciding
    first = {_heading(deciding): Text(row.cells[deciding].text, "bold")}
    last = {_heading(key): Text(row.cells[key].text) for key in ("overall", "bytes", "time")}
    return {**first, **{key: Text(row.cells[key].text) for key in beside}, **axes, **last}


def _heading(key: str) -> str:
    return {"overall": "mean", "weighted": "weighted\nmean"}.get(key, key)


def _worst_cases(leaderboard: Leaderboard, row: LeaderboardRow) -> dict[str, Text]:
    return {f"worst case of {axis}": Text(row.cells[axis].worst_case) for axis in leaderboard.attacked_axes}


def _paper_and_means(leaderboard: Leaderboard, row: LeaderboardRow) -> dict[str, Text]:
    headings = {f"paper_{axis}": f"{axis},\npaper form" for axis in leaderboard.attacked_axes}
    headings |= {f"average:{axis}": f"{axis},\nmean" for axis in leaderboard.attacked_axes}
    return {heading: Text(row.cells[key].text) for key, heading in {**headings, "cells": "cells"}.items()}


def _parties(leaderboard: Leaderboard, row: LeaderboardRow) -> dict[str, Text]:
    return {f"privacy:\n{party}": Text(row.cells[f"party:{party}"].text) for party in leaderboard.parties}


def _table(rows: Sequence[LeaderboardRow], lines: Sequence[dict[str, Text]], widths: Mapping[str, int]) -> Table:
    """Rank and name of each defense, and some columns; `widths` are their least ones."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_lines=False)
    table.add_column("#", justify="right")
    table.add_column("defense", overflow="fold", min_width=min(NAME, max(len(row.defense) for row in rows)))
    for heading in lines[0]:
        table.add_column(heading, overflow="fold", min_width=widths.get(heading))
    for row, line in zip(rows, lines, strict=True):
        table.add_row(row.rank, Text(row.defense, "bold"), *line.values(), style="dim" if row.unranked else "")
    return table


def _list(console: Terminal, heading: str, lines: Sequence[str], whole: bool = False) -> None:
    """A heading and its lines. `whole` lines are never broken, so that they can be copied."""
    if lines:
        console.print(Text(f"\n{heading}", "bold"))
    for line in lines:
        console.print(Text(line), soft_wrap=whole)
