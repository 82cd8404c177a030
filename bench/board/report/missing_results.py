"""What a report cannot say: trials without a result, attacks that could not start, and limits of its numbers."""

from __future__ import annotations

from fedarena.board.board import Board, BoardCell
from fedarena.board.notes import has_several_problems, warning_lines
from fedarena.board.score_text import NOTHING
from fedarena.core.text.markdown import escape, table

BROKEN = ("failed", "missing", "mixed", "diverged")


def without_result(board: Board) -> str:
    """Clean runs and cells that failed, are missing, diverged, or differ between seeds, with their reasons."""
    rows = [
        [run.problem, run.defense, "no attack", run.status, run.reason or NOTHING]
        for run in board.clean_runs
        if run.status in BROKEN
    ]
    rows += [
        [c.problem, c.defense, f"{c.attack}: {c.threat}", _statuses(c), c.reason or NOTHING]
        for c in board.cells
        if c.status in BROKEN
    ]
    if rows:
        heads = ["problem", "defense", "attack", "status", "reason"]
        return table(heads, [[escape(text) for text in row] for row in rows])
    measured = board.cells or board.clean_runs
    return "Nothing is missing, and nothing failed." if measured else "There are no results at all."


def could_not_start(board: Board) -> str:
    """The cells that are n/a, grouped by reason."""
    reasons: dict[str, list[BoardCell]] = {}
    for c in board.cells:
        if c.status == "n/a":
            reasons.setdefault(c.reason, []).append(c)
    if not reasons:
        return "No attack was n/a."
    rows = [
        [escape(reason) or NOTHING, str(len(cells)), escape(_where(cells, has_several_problems(board)))]
        for reason, cells in reasons.items()
    ]
    return table(["reason", "cells", "where"], rows)


def limits(board: Board) -> list[str]:
    """What these numbers do not show."""
    n = len(board.seeds)
    if n < 2:
        lines = [f"{'One seed' if n else 'No seed'}: no interval, and no difference can be distinguished from chance."]
    else:
        lines = [
            f"{n} seeds: intervals are Student's t over seeds, and say nothing about other data, models or settings.",
            "Curves, ROC curves and pictures are of one seed.",
        ]
        fewer = sum(1 for c in board.cells if c.scores and len(c.scores) < n)
        lines += [f"{fewer} of {len(board.cells)} cells have a score of fewer seeds than that."] if fewer else []
    lines.append(
        "An attack that fails here may succeed with more effort or another idea: scores are upper bounds on what a "
        "defense withstands. Worst cases are the worst of those that were run."
    )
    return lines + warning_lines(board)


def _statuses(c: BoardCell) -> str:
    """ "failed", or "mixed: ok 0, 1; failed 2" with the seeds of each status."""
    if c.status != "mixed":
        return c.status
    seeds: dict[str, list[str]] = {}
    for seed, status in sorted(c.statuses.items()):
        seeds.setdefault(status, []).append(str(seed))
    return "mixed: " + "; ".join(f"{status} {', '.join(of)}" for status, of in seeds.items())


def _where(cells: list[BoardCell], several_problems: bool) -> str:
    """ "dbcl: dlg (client, paper; client, adaptive)"."""
    threats: dict[str, list[str]] = {}
    for c in cells:
        pairing = f"{c.defense}: {c.attack}{f' on {c.problem}' if several_problems else ''}"
        threats.setdefault(pairing, []).append(c.threat)
    return "; ".join(f"{pairing} ({'; '.join(of)})" for pairing, of in threats.items())
