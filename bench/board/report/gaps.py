"""What a report does not say: trials without a result, attacks that could not start, and limits of its numbers."""

from __future__ import annotations

from fedarena.board.board import Board, Cell
from fedarena.board.words import NOTHING, marks, several
from fedarena.core.text.markdown import escape, table

BROKEN = ("failed", "missing", "mixed", "diverged")


def without_result(board: Board) -> str:
    """Cells and honest runs that failed, are missing, diverged, or differ between seeds; reasons with them."""
    honest = [
        [escape(h.problem), escape(h.defense), "nobody", escape(h.status), escape(h.reason) or NOTHING]
        for h in board.honest
        if h.status in BROKEN
    ]
    cells = [
        [
            escape(c.problem),
            escape(c.defense),
            escape(f"{c.attack}: {c.threat}"),
            _seeds(c),
            escape(c.reason) or NOTHING,
        ]
        for c in board.cells
        if c.status in BROKEN
    ]
    if not honest and not cells:
        return (
            "Nothing is missing, and nothing failed." if board.cells or board.honest else "There are no results at all."
        )
    return table(["problem", "defense", "attacked by", "status", "reason"], honest + cells)


def could_not_start(board: Board) -> str:
    """n/a by reason; a reason counts once for all cells that share it."""
    reasons: dict[str, list[Cell]] = {}
    for c in board.cells:
        if c.status == "n/a":
            reasons.setdefault(c.reason, []).append(c)
    if not reasons:
        return "No attack was n/a."
    rows = [
        [escape(why) or NOTHING, str(len(cells)), escape(_where(cells, several(board)))]
        for why, cells in reasons.items()
    ]
    return table(["reason", "cells", "where"], rows)


def limits(board: Board) -> list[str]:
    """What a reader must not take these numbers for."""
    n = len(board.seeds)
    if n < 2:
        told = [f"{'One seed' if n else 'No seed'}: no interval, and no difference can be told from chance."]
    else:
        told = [
            f"{n} seeds: intervals are Student's t over seeds, and say nothing about other data, models or settings.",
            "Curves, ROC curves and pictures are of one seed.",
        ]
        fewer = sum(1 for c in board.cells if c.scores and len(c.scores) < n)
        told += [f"{fewer} of {len(board.cells)} cells have a score of fewer seeds than that."] if fewer else []
    told.append(
        "An attack that fails here may succeed with more effort or another idea: scores are upper bounds on what a "
        "defense withstands. Worst cases are the worst of those that were run."
    )
    return told + marks(board)


def _seeds(c: Cell) -> str:
    """ "failed", or "mixed: ok 0, 1; failed 2"."""
    if c.status != "mixed":
        return escape(c.status)
    by_status: dict[str, list[str]] = {}
    for seed, status in sorted(c.statuses.items()):
        by_status.setdefault(status, []).append(str(seed))
    return escape("mixed: " + "; ".join(f"{status} {', '.join(seeds)}" for status, seeds in by_status.items()))


def _where(cells: list[Cell], more: bool) -> str:
    """ "dbcl: dlg (client, paper; client, adaptive)"."""
    found: dict[str, list[str]] = {}
    for c in cells:
        found.setdefault(f"{c.defense}: {c.attack}{f' on {c.problem}' if more else ''}", []).append(c.threat)
    return "; ".join(f"{what} ({'; '.join(threats)})" for what, threats in found.items())
