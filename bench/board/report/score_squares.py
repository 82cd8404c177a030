"""The worst score of each defense against each attack, which a heat map shows as squares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fedarena.board.board import Board, BoardCell
from fedarena.board.ranking import worst

NOT_PLANNED = "–"


@dataclass(frozen=True)
class Square:
    """One square.

    Attributes:
        text: the score, a status where there is no score, or `NOT_PLANNED`.
        value: the lowest mean score over threats; None where there is none.
        partial: whether another threat gave no result, so that the worst score may be lower still.
    """

    text: str
    value: float | None
    partial: bool = False


def square(cells: Sequence[BoardCell]) -> Square:
    """The worst over all threats of one attack on one defense; if some count in scores, over those alone."""
    counted = [c for c in cells if c.counts]
    if cells and not counted:
        uncounted = square([replace(c, counts=True) for c in cells])
        return replace(uncounted, text=f"({uncounted.text})") if uncounted.value is not None else uncounted
    statuses = {c.status for c in counted}
    partial = bool(statuses - {"ok", "n/a"})
    lowest = worst([c for c in counted if c.scores]).value
    if lowest is not None:
        return Square(f"{lowest.value:.2f}{'*' if partial else ''}", lowest.value, partial)
    for status in ("failed", "diverged", "mixed", "missing", "n/a"):  # the least informative first
        if status in statuses:
            return Square(status, None, partial and statuses != {status})
    return Square(NOT_PLANNED, None)


def attacks_by_axis(board: Board, problem: str) -> dict[str, list[str]]:
    """Attacks by axis, in the order of their first appearance; poisoning first."""
    return {
        axis: list(dict.fromkeys(c.attack for c in board.cells if c.problem == problem and c.axis == axis))
        for axis in ("integrity", "privacy")
    }


def squares(board: Board, problem: str, form: str) -> dict[tuple[str, str], Square]:
    """(defense, attack) → square. An adaptive attacker may still do what the paper tried."""
    forms = ("paper",) if form == "paper" else ("paper", "adaptive")
    cells = [c for c in board.cells if c.problem == problem and c.form in forms]
    attacks = [name for names in attacks_by_axis(board, problem).values() for name in names]
    return {
        (defense, attack): square([c for c in cells if (c.defense, c.attack) == (defense, attack)])
        for defense in board.defenses
        for attack in attacks
    }
