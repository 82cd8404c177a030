"""Adds cells that others measured to a board: a stronger attack on a listed defense lowers its score.

A worst case over attacks holds until a stronger attack is found. To contribute one, run a suite on the board's own
problems, with an attack from a plug-in or with better options of a listed attack. The cells of that suite join the
board, and the lowest score counts. They join only where the problem is exactly the board's (FedAvg must have reached
the same accuracy on every seed that both have), where the board has the defense, and only with every seed of the board,
since success on one lucky seed is no weakness. A note says what was left out and why.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import replace
from typing import TypeVar

from fedarena.board.board import Board, BoardCell, ProblemInfo
from fedarena.contracts.baseline import BASELINE
from fedarena.core.errors import UserError
from fedarena.core.text.numbers import plural

V = TypeVar("V")

CLOSE = 1e-3
"""Accuracies that differ by less are the same run on another machine."""


def merge(board: Board, others: Sequence[Board]) -> Board:
    """The board with the others' cells on its own problems and defenses.

    An attack that the board has already, with other options, joins under its name and the other suite's. Cells that
    are there already, measured by the very same records, do not join again: neither the board's own nor those of a
    board that was named twice.

    Raises:
        UserError: another board has no problem in common with this one.
    """
    merged, present = board, {_measurement(board, c) for c in board.cells}
    for other in others:
        cells, left_out = _joining_cells(board, other, present)
        present |= {_measurement(board, c) for c in cells}
        merged = _with_cells(merged, other, cells, left_out)
    return merged


Measurement = tuple[tuple[str, ...], frozenset[tuple[int, str]]]
"""What a cell is, and by which records it was measured."""


def _joining_cells(board: Board, other: Board, present: Set[Measurement]) -> tuple[list[BoardCell], str]:
    """The other board's cells that may join and are not `present` yet, and a note on those that may not.

    Raises:
        UserError: the other board has no problem in common with this one.
    """
    names = _same_problems(board, other)
    if not names:
        raise UserError(
            f"board '{other.suite}' cannot join '{board.suite}': it has no problem on which FedAvg reached the "
            "same accuracy on the same seeds; copy the problem's table from the suite as it stands, and run a suite "
            "with an attack of another package with --secret none"
        )
    scored = [c for c in other.cells if c.defense != BASELINE and c.scores]
    cells = [replace(c, problem=names[c.problem]) for c in scored if c.problem in names]
    cells, unknown_defenses = _of_known_defenses(board, cells)
    cells = [c for c in cells if _measurement(board, c) not in present]
    cells, other_options = _with_same_defense(board, cells)
    cells, too_few_seeds = _on_all_seeds(board, cells)
    other_problems = _left_out("problem", (c.problem for c in scored if c.problem not in names))
    return cells, other_problems + unknown_defenses + other_options + too_few_seeds


def _with_cells(merged: Board, other: Board, cells: Sequence[BoardCell], left_out: str) -> Board:
    """The merged board with the other board's cells, which name where they come from."""
    places = {c.place for c in merged.cells}
    source = f"{other.title} (suite {other.suite})" if other.title else f"suite {other.suite}"
    added = tuple(
        replace(
            c,
            attack=f"{c.attack} [{other.suite}]" if c.place in places else c.attack,
            found_by=f"{c.found_by}, {source}" if c.found_by else source,
        )
        for c in cells
    )
    return replace(merged, cells=(*merged.cells, *added), notes=(*merged.notes, _note(other, added) + left_out))


def _of_known_defenses(board: Board, cells: Sequence[BoardCell]) -> tuple[list[BoardCell], str]:
    """Cells of defenses that the board has, and a note on the others."""
    known = [c for c in cells if c.defense in board.defenses]
    return known, _left_out("defense", (c.defense for c in cells if c.defense not in board.defenses))


def _left_out(kind: str, names: Iterable[str]) -> str:
    """A note on cells of problems or defenses that the board does not have."""
    unknown = list(dict.fromkeys(names))
    if not unknown:
        return ""
    return f"; left out are cells of {', '.join(unknown)} (the board has no such {kind})"


def _with_same_defense(board: Board, cells: Sequence[BoardCell]) -> tuple[list[BoardCell], str]:
    """Cells whose defense has the same options as on the board, and a note on the others."""
    known = {(c.problem, c.defense, c.defense_settings) for c in board.cells if c.defense_settings}
    same = [c for c in cells if (c.problem, c.defense, c.defense_settings) in known]
    left_out = dict.fromkeys(c.defense for c in cells if c not in same)
    if not left_out:
        return same, ""
    return same, f"; left out are cells of {', '.join(left_out)}, which has other options there than on the board"


def _measurement(board: Board, c: BoardCell) -> Measurement:
    """The cell, and the records by which it was measured on the board's seeds."""
    return c.place, frozenset((seed, c.keys[seed]) for seed in board.seeds if seed in c.keys)


def _on_all_seeds(board: Board, cells: Sequence[BoardCell]) -> tuple[list[BoardCell], str]:
    """Cells that were measured on every seed of the board, restricted to these seeds, and a note on the others."""
    wanted = set(board.seeds)
    complete, left_out = [], []
    for c in cells:
        measured = {seed for seed, status in c.statuses.items() if status != "missing"}
        if wanted <= measured:
            complete.append(_restricted(c, wanted))
        else:
            left_out.append((c.attack, sorted(wanted - measured)))
    if not left_out:
        return complete, ""
    examples = "; ".join(f"{attack} lacks seeds {', '.join(map(str, seeds))}" for attack, seeds in left_out[:3])
    are = "is left out, since it was" if len(left_out) == 1 else "are left out, since they were"
    return complete, f"; {plural(len(left_out), 'cell')} {are} not measured on every seed of the board ({examples})"


def _restricted(c: BoardCell, seeds: set[int]) -> BoardCell:
    """The cell with these seeds alone."""

    def some(values: dict[int, V]) -> dict[int, V]:
        return {seed: value for seed, value in values.items() if seed in seeds}

    metrics = {name: some(values) for name, values in c.metrics.items()}
    return replace(c, statuses=some(c.statuses), scores=some(c.scores), metrics=metrics, keys=some(c.keys))


def _same_problems(board: Board, other: Board) -> dict[str, str]:
    """Name on the other board → name on this one."""
    return {b.name: a.name for b in other.problems for a in board.problems if _same(a, b)}


def _same(a: ProblemInfo, b: ProblemInfo) -> bool:
    ours, theirs = a.reference_accuracy, b.reference_accuracy
    seeds = set(ours) & set(theirs)
    return a.description == b.description and bool(seeds) and all(abs(ours[s] - theirs[s]) < CLOSE for s in seeds)


def _note(other: Board, cells: Sequence[BoardCell]) -> str:
    attacks = ", ".join(dict.fromkeys(c.attack for c in cells)) or "none"
    if len(cells) == 1:
        return f"1 cell is from suite '{other.suite}' (attack: {attacks}); where it is lower, it counts"
    count = plural(len(cells), "cell")
    return f"{count} are from suite '{other.suite}' (attacks: {attacks}); where they are lower, they count"
