"""Prints a leaderboard as markdown."""

from __future__ import annotations

from collections.abc import Sequence

from fedarena.board.leaderboard import Leaderboard, LeaderboardRow, columns
from fedarena.core.text.markdown import escape, items, table


def page(leaderboard: Leaderboard, commands: Sequence[str] = ()) -> str:
    """The whole leaderboard: heading, advice, ranking, notes, how the scores are computed, commands."""
    about = f"Threats: {escape(leaderboard.threats)}. {escape(leaderboard.summary)}. Seeds: {leaderboard.seeds}."
    source = f"Made from records of {escape(leaderboard.provenance)}." if leaderboard.provenance else ""
    lines = [
        f"# {escape(leaderboard.title)}",
        "",
        about,
        "",
        *_items([escape(line) for line in leaderboard.problems]),
        "## Which defense to take",
        "",
        *(f"{escape(sentence)}\n" for sentence in leaderboard.advice),
        "## Ranking",
        "",
        ranking(leaderboard),
        *_section("## Notes", [escape(note) for note in leaderboard.notes]),
        "## How the scores are made",
        "",
        *(f"{sentence}\n" for sentence in leaderboard.how),
        *_section("## Commands", [f"`{command}`" for command in commands]),
        source,
    ]
    return "\n".join(lines).rstrip() + "\n"


def ranking(leaderboard: Leaderboard) -> str:
    """Two tables, the ranks with their scores and further columns; then who has no rank, and the references."""
    if not leaderboard.rows:
        return "No records, so there is nothing to rank.\n"
    unranked = _items([escape(line) for line in leaderboard.unranked])
    tables = [_scores(leaderboard), "", _further_columns(leaderboard), "", *unranked, *_beside(leaderboard)]
    return "\n".join([leaderboard.rule, "", *tables])


def _scores(leaderboard: Leaderboard) -> str:
    """The deciding score, the score of each axis with its worst case, their mean, and costs."""
    titles = columns(leaderboard.parties)
    first = [*leaderboard.deciding, "utility"]
    heads = [titles[key] for key in first]
    for axis in leaderboard.attacked_axes:
        heads += [axis, f"worst case of {axis}"]

    last = ("overall", "bytes", "time")

    def cells(row: LeaderboardRow) -> list[str]:
        texts = [row.cells[key].text for key in first]
        for axis in leaderboard.attacked_axes:
            texts += [row.cells[axis].text, row.cells[axis].worst_case]
        return [*texts, *(row.cells[key].text for key in last)]

    heads += [titles[key] for key in last]
    return _table(leaderboard, heads, [cells(row) for row in leaderboard.rows])


def _further_columns(leaderboard: Leaderboard) -> str:
    """Paper form, means over cells, privacy by party, and counts of cells."""
    titles = columns(leaderboard.parties)
    keys = [f"paper_{axis}" for axis in leaderboard.attacked_axes]
    keys += [f"average:{axis}" for axis in leaderboard.attacked_axes]
    keys += [*(f"party:{party}" for party in leaderboard.parties), "cells"]
    cells = [[row.cells[key].text for key in keys] for row in leaderboard.rows]
    return _table(leaderboard, [titles[key] for key in keys], cells)


def _beside(leaderboard: Leaderboard) -> list[str]:
    """What can be had without a federation, and what nodes reach without a server; nothing of what was not measured."""
    parts: list[str] = []
    for introduction, heads, lines in leaderboard.beside.values():
        rows = [[escape(text) for text in line] for line in lines]
        parts += [introduction, "", table(heads, rows), ""] if rows else []
    return parts


def _table(leaderboard: Leaderboard, heads: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    """A table with a row for each defense, which begins with its rank and its name."""
    rows = [[row.rank, row.defense, *texts] for row, texts in zip(leaderboard.rows, cells, strict=True)]
    return table(["rank", "defense", *heads], [[escape(text) for text in row] for row in rows])


def _items(lines: Sequence[str]) -> list[str]:
    return [items(lines), ""] if lines else []


def _section(heading: str, lines: Sequence[str]) -> list[str]:
    return [heading, "", *_items(lines)] if lines else []
