"""Fields of a published board that are each valid, and that no run gives together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from fedarena.board.board import Board, BoardCell, CleanRun, overall
from fedarena.board.published_schema import row_title
from fedarena.records.json_schema import brief


def check_together(board: Board) -> None:
    """Raise ValueError for the first fault."""
    for fault in (*_seed_faults(board), *_row_faults(board), *_duplicates(board)):
        raise ValueError(fault)


def _seed_faults(board: Board) -> Iterator[str]:
    """The board's list of seeds against the seeds of its cells and clean runs."""
    if repeated := [seed for seed, count in Counter(board.seeds).items() if count > 1]:
        yield f"seeds has {repeated[0]} twice"
    measured = {s for c in board.cells for s in c.statuses} | {s for r in board.clean_runs for s in r.accuracy}
    if board.cells and (different := sorted(set(board.seeds) ^ measured)):
        where = "is in no cell" if different[0] in board.seeds else "is in cells, and not there"
        seeds = ", ".join(map(str, board.seeds)) or "none"
        yield f"seeds is {seeds}: seed {different[0]} {where}"


def _row_faults(board: Board) -> Iterator[str]:
    """Each cell and each clean run by itself, and whether its problem is on the board."""
    problems = {p.name for p in board.problems}
    rows: list[tuple[str, int, BoardCell | CleanRun, str]] = [
        *(("cells", i, c, _cell_fault(c)) for i, c in enumerate(board.cells)),
        *(("honest", i, r, _clean_run_fault(r)) for i, r in enumerate(board.clean_runs)),
    ]
    for kind, i, row, fault in rows:
        if row.problem not in problems:
            fault = f"problem is {brief(row.problem)}, which is not among the board's arenas"
        if fault:
            yield f"{row_title(kind, i, vars(row))}: {fault}"


def _duplicates(board: Board) -> Iterator[str]:
    places: list[tuple[str, ...]] = [(p.name,) for p in board.problems]
    places += [c.place for c in board.cells] + [r.place for r in board.clean_runs]
    for place, count in Counter(places).items():
        if count > 1:
            yield f"{' · '.join(filter(None, place))} is there twice"


def _cell_fault(c: BoardCell) -> str:
    """What contradicts itself in a cell; empty where nothing does."""
    together = overall(c.statuses.values())
    if c.status != together:
        return f"status is {brief(c.status)}, and of its seeds it is {brief(together)} (statuses)"
    # Only corrupted clients know something, and only they poison.
    axis = "integrity" if c.knows else "privacy"
    if c.axis != axis:
        return f"axis is {brief(c.axis)}, and of one with knows {brief(c.knows)} it is {brief(axis)}"
    if bool(c.goal) != (axis == "privacy"):
        return f"goal is {brief(c.goal)}, which no cell of axis {axis} has"
    for seed in c.scores:
        if c.statuses.get(seed, "missing") in ("n/a", "failed", "missing"):
            return f"scores has seed {seed}, which is {c.statuses.get(seed, 'missing')} (statuses)"
    return ""


def _clean_run_fault(run: CleanRun) -> str:
    """What contradicts itself in a clean run; empty where nothing does."""
    if run.status in ("ok", "diverged") and not run.accuracy:
        return f"status is {brief(run.status)}, and accuracy has no seed"
    if lacking := [seed for seed in run.utility if seed not in run.accuracy]:
        return f"utility has seed {lacking[0]}, which accuracy has not"
    return ""
