"""A board as markdown: the ranking, which defense to take, and what to know about the numbers."""

from __future__ import annotations

from collections.abc import Sequence

from fedarena.board.advice import advice, summary
from fedarena.board.board import Board
from fedarena.board.standing import Cut, Standing, standings, threats_on
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
from fedarena.core.text.markdown import escape, items, table


def page(board: Board, cut: Cut | None = None, commands: Sequence[str] = ()) -> str:
    """The whole leaderboard: heading, advice, tables, notes, how scores are made, commands."""
    cut = cut or threats_on(board)
    rows = standings(board, cut)
    told = [
        f"# {escape(board.title or board.suite)}",
        "",
        f"Threats: {escape(asked(cut))}. {escape(summary(board, cut, rows))}. Seeds: {seeds(board)}.",
        "",
        *_items([f"{escape(a.name)}: {escape(a.told)}" for a in asked_problems(board, cut)]),
        "## Which defense to take",
        "",
        *(f"{escape(sentence)}\n" for sentence in advice(board, cut, rows)),
        "## Ranking",
        "",
        ranking(board, cut, rows),
        *_listed("## Notes", [escape(n) for n in notes(board, cut, rows)]),
        "## How the scores are made",
        "",
        *(f"{sentence}\n" for sentence in HOW),
        *_listed("## Commands", [f"`{c}`" for c in commands]),
        f"Made from records of {escape(made(board))}." if made(board) else "",
    ]
    return "\n".join(told).rstrip() + "\n"


def ranking(board: Board, cut: Cut | None = None, rows: Sequence[Standing] | None = None) -> str:
    """Two tables: ranks with what makes them, then the columns beside them; and why some have no rank.

    Args:
        rows: `standings(board, cut)`, where the caller has them.
    """
    cut = cut or threats_on(board)
    rows = standings(board, cut) if rows is None else rows
    if not rows:
        return "No records, so there is nothing to rank.\n"
    unranked = [escape(line) for line in reasons(rows)]
    return "\n".join([_main(board, cut, rows), "", _beside(board, cut, rows), "", *_items(unranked)])


def _main(board: Board, cut: Cut, rows: Sequence[Standing]) -> str:
    heads = ["rank", "defense", "overall"]
    for axis in cut.axes:
        heads += [axis] if axis == "utility" else [axis, f"worst case of {axis}"]
    body = []
    for row in rows:
        line = [str(row.rank or NOTHING), labelled(row), score(row.overall)]
        for axis in cut.axes:
            found = getattr(row, axis)
            line += [score(found)] if axis == "utility" else [score(found), case(found, several(board))]
        body.append([*line, times(row.bytes), times(row.seconds)])
    return _table([*heads, "bytes / FedAvg's", "time / FedAvg's"], body)


def _beside(board: Board, cut: Cut, rows: Sequence[Standing]) -> str:
    axes, who = [a for a in cut.axes if a != "utility"], parties(board, cut)
    heads = ["rank", "defense", *(f"{a}, paper form" for a in axes), *(f"{a}, mean over cells" for a in axes)]
    heads += [*(f"privacy: {p}" for p in who), "cells"]
    body = []
    for row in rows:
        line = [str(row.rank or NOTHING), labelled(row)]
        line += [score(getattr(row, f"paper_{a}")) for a in axes]
        line += [average(getattr(row, a)) for a in axes]
        body.append([*line, *(score(row.by_party[p]) for p in who), counts(row.counts)])
    return _table(heads, body)


def _table(heads: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    return table(heads, [[escape(text) for text in line] for line in body])


def _items(lines: Sequence[str]) -> list[str]:
    return [items(lines), ""] if lines else []


def _listed(heading: str, lines: Sequence[str]) -> list[str]:
    return [heading, "", *_items(lines)] if lines else []
