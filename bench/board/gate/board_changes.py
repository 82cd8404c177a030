"""What changed in the problems, and what concerns a board as a whole."""

from __future__ import annotations

from fedarena.board.board import Board, BoardCell, ProblemInfo
from fedarena.board.gate.change import NOT_MEASURED, Change

ROUNDING = 1e-6
"""Chance levels that differ by no more are equal: boards keep six decimals."""


CLOSE = 0.01
"""Accuracies of clients that train alone that differ by no more are the same on another machine."""


def board_changes(base: Board, new: Board) -> list[Change]:
    """What concerns the boards as a whole: no scores, only failures, notes, additional seeds."""
    changes = []
    for board, role in ((base, "base"), (new, "new")):
        # Failures of the new board alone are reported cell by cell.
        failures = _only_failures(board) if _only_failures(base) else []
        changes += [Change(f"the {role} board {what}") for what in _without_scores(board) or failures]
        changes += [Change(f"the {role} board: {note}", finding=False) for note in board.notes]
    if more := [str(seed) for seed in new.seeds if seed not in base.seeds]:
        text = f"only the new board has seeds {', '.join(more)}: they are not compared"
        changes.append(Change(text, finding=False))
    return changes


def problem_changes(base: ProblemInfo, new: ProblemInfo | None) -> list[Change]:
    """What changed in a problem. A problem that was measured on neither board gives no changes."""
    if not base.dataset:
        return []
    if new is None:
        return [Change("missing: the new board does not have this problem")]
    if not new.dataset:
        return []
    fields = (
        ("data set", base.dataset, new.dataset),
        ("measure", base.measure, new.measure),
        ("subset of the data", base.subset, new.subset),
    )
    changes = [
        Change(f"another problem: {name} {was or 'none'} → {now or 'none'}") for name, was, now in fields if was != now
    ]
    if abs(base.chance - new.chance) > ROUNDING:
        changes.append(Change(f"another problem: chance {base.chance:g} → {new.chance:g}"))
    counts = base.utility or new.utility  # elsewhere no score begins there
    if counts and any(abs(value - new.local_only.get(seed, value)) > CLOSE for seed, value in base.local_only.items()):
        changes.append(Change("clients that train alone reach another accuracy, which utility and integrity begin at"))
    if base.description != new.description:
        changes.append(Change(f"the description changed: {base.description} → {new.description}", finding=False))
    if base.utility != new.utility:
        changes.append(Change(f"its accuracy {'counts' if new.utility else 'does not count'} as utility now"))
    return changes


def _without_scores(board: Board) -> list[str]:
    """A change for a board without any score. Two such boards are equal, and would pass otherwise."""
    if not board.cells and not board.clean_runs:
        return ["has no cells"]
    measured = any(c.scores for c in board.cells) or any(run.utility for run in board.clean_runs)
    return [] if measured else ["measured nothing: it has no score at all"]


def _only_failures(board: Board) -> list[str]:
    """A change for a board whose cells or clean runs all failed. Two such boards are equal, and would pass
    otherwise."""
    failures = []
    lost = sum(map(_lost_a_seed, board.cells))
    if lost and not any(c.scores for c in board.cells):
        failures.append(f"measured nothing in any cell: {lost} of {len(board.cells)} failed or have no score")
    broken = [run for run in board.clean_runs if run.status in NOT_MEASURED]
    if broken and not any(run.accuracy for run in board.clean_runs if run not in broken):
        failures.append(f"measured no clean run: {len(broken)} of {len(board.clean_runs)} failed or are missing")
    return failures


def _lost_a_seed(c: BoardCell) -> bool:
    """Whether a seed of a cell was not measured, and should have been.

    An attack that could not start is a result, and so is a clean run that learned nothing that could be broken.
    """
    without_score = {seed for seed, status in c.statuses.items() if status == "ok" and seed not in c.scores}
    return any(s in NOT_MEASURED for s in c.statuses.values()) or (c.axis == "privacy" and bool(without_score))
