"""Cells that others measured, put onto a board: a stronger attack on a listed defense lowers its score.

A worst case over attacks holds until somebody finds a worse one. Whoever does runs a suite of one's own on the board's
own problems, with an attack from a plug-in or a listed one better used; its cells join the board, and the lowest score
counts. They join only where the problem is the board's to the last digit (FedAvg must have reached the same accuracy on
every seed that both have), and only with every seed of the board, since one lucky seed is no weakness.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from fedarena.board.board import Arena, Board, Cell
from fedarena.core.errors import UserError
from fedarena.core.text.plural import plural

V = TypeVar("V")

CLOSE = 1e-3
"""Accuracies that differ by less are the same run on another machine."""


def merge(board: Board, others: Sequence[Board]) -> Board:
    """The board with the others' cells on its own problems and defenses.

    An attack that the board has already, with other options, joins under its name and the other suite's. Cells that
    are there already, measured by the very same records, do not join again: neither the board's own nor those of a
    board that was named twice.

    Raises:
        UserError: another board that has no problem in common with this one.
    """
    known, cells, notes = {c.place for c in board.cells}, list(board.cells), list(board.notes)
    there = {_measured(board, c) for c in board.cells}
    for other in others:
        same = _same_problems(board, other)
        if not same:
            raise UserError(
                f"board '{other.suite}' cannot join '{board.suite}': it has no problem on which FedAvg reached the "
                "same accuracy on the same seeds; copy the problem's table from the suite as it stands"
            )
        found = [
            replace(c, problem=same[c.problem]) for c in other.cells if c.problem in same and c.defense != "fedavg"
        ]
        found = [c for c in found if c.defense in board.defenses and c.scores]
        found = [c for c in found if _measured(board, c) not in there]
        found, left_out = _as_defended(board, found)
        found, too_few = _on_all_seeds(board, found)
        there |= {_measured(board, c) for c in found}  # before any is renamed
        found = [replace(c, attack=f"{c.attack} [{other.suite}]") if c.place in known else c for c in found]
        known |= {c.place for c in found}
        who = f"{other.title} (suite {other.suite})" if other.title else f"suite {other.suite}"
        cells += [replace(c, found_by=f"{c.found_by}, " * bool(c.found_by) + who) for c in found]
        notes.append(_note(other, found) + left_out + too_few)
    return replace(board, cells=tuple(cells), notes=tuple(notes))


def _as_defended(board: Board, found: Sequence[Cell]) -> tuple[list[Cell], str]:
    """Cells whose defense has the options that it has on the board, and what to say of the others."""
    known = {(c.problem, c.defense, c.defended) for c in board.cells if c.defended}
    kept = [c for c in found if (c.problem, c.defense, c.defended) in known]
    away = dict.fromkeys(c.defense for c in found if c not in kept)
    if not away:
        return kept, ""
    return kept, f"; left out are cells of {', '.join(away)}, which has other options there than on the board"


def _measured(board: Board, c: Cell) -> tuple[tuple[str, ...], frozenset[tuple[int, str]]]:
    """What a cell is, and by which records it was measured on the board's seeds."""
    return c.place, frozenset((seed, c.keys[seed]) for seed in board.seeds if seed in c.keys)


def _on_all_seeds(board: Board, found: Sequence[Cell]) -> tuple[list[Cell], str]:
    """Cells that were measured on every seed of the board, cut to these, and what to say of the others."""
    wanted = set(board.seeds)
    kept, away = [], []
    for c in found:
        there = {seed for seed, status in c.statuses.items() if status != "missing"}
        if wanted <= there:
            kept.append(_cut(c, wanted))
        else:
            away.append((c.attack, sorted(wanted - there)))
    if not away:
        return kept, ""
    told = "; ".join(f"{attack} lacks seeds {', '.join(map(str, seeds))}" for attack, seeds in away[:3])
    are = "is left out, for it was" if len(away) == 1 else "are left out, for they were"
    return kept, f"; {plural(len(away), 'cell')} {are} not measured on every seed of the board ({told})"


def _cut(c: Cell, seeds: set[int]) -> Cell:
    def some(found: dict[int, V]) -> dict[int, V]:
        return {seed: value for seed, value in found.items() if seed in seeds}

    metrics = {name: some(values) for name, values in c.metrics.items()}
    return replace(c, statuses=some(c.statuses), scores=some(c.scores), metrics=metrics, keys=some(c.keys))


def _same_problems(board: Board, other: Board) -> dict[str, str]:
    """Name on the other board → name on this one."""
    return {b.name: a.name for b in other.arenas for a in board.arenas if _same(a, b)}


def _same(a: Arena, b: Arena) -> bool:
    seeds = set(a.fedavg) & set(b.fedavg)
    return a.told == b.told and bool(seeds) and all(abs(a.fedavg[s] - b.fedavg[s]) < CLOSE for s in seeds)


def _note(other: Board, found: Sequence[Cell]) -> str:
    attacks = ", ".join(dict.fromkeys(c.attack for c in found)) or "none"
    if len(found) == 1:
        return f"1 cell is from suite '{other.suite}' (attack: {attacks}); where it is lower, it counts"
    cells = plural(len(found), "cell")
    return f"{cells} are from suite '{other.suite}' (attacks: {attacks}); where they are lower, they count"
