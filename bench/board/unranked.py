"""Why a defense has no rank.

A defense is ranked only if it has all scores that count and has met every attack and threat that the filter admits: a
worst case over fewer attacks is no worst case. n/a counts as met (the attack had nothing to start from); failed and
missing do not. If the seeds of a cell disagree, one failed seed is enough to count as not met; otherwise failures would
be averaged away. A cell that is excluded is not met either, and its reason is given (`fedarena.board.exclusion`). An
attack that has several cells on a defense, one for each form, is met if all of them are: otherwise an attack that
breaks down in its stronger form would pass for one that was withstood.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence, Set

from fedarena.board.board import Board, BoardCell
from fedarena.board.threat_filter import ThreatFilter


def required_attempts(board: Board, threats: ThreatFilter) -> set[tuple[str, ...]]:
    """The attacks and threats that a defense must have met.

    A contributed attack against one defense lowers the score of that defense; others need not meet it.
    """
    return {c.attempt for c in board.cells if not c.found_by and threats.counts(c)}


def unranked(
    board: Board, threats: ThreatFilter, defense: str, lacking: Sequence[str], required: Set[tuple[str, ...]]
) -> str:
    """The reason in words; empty where the defense is ranked.

    Args:
        lacking: the axes that count and on which it has no score.
        required: `required_attempts(board, threats)`, the same for all defenses.
    """
    own = [c for c in board.cells_of.get(defense, ()) if threats.admits(c)]
    if lacking:
        reasons = _reasons(c for c in own if c.axis in lacking)
        return f"no {' and no '.join(lacking)} score{f': {reasons}' if reasons else ''}"
    unmet = required - _met_attempts(own)
    excluded = {c.attempt for c in own if c.excluded} & unmet
    parts = [f"{len(unmet - excluded)} of {len(required)} attacks and threats not met"] if unmet - excluded else []
    if excluded:
        reasons = _reasons(c for c in own if c.attempt in excluded)
        parts.append(f"{len(excluded)} of {len(required)} attacks and threats do not count against it: {reasons}")
    return " and ".join(parts)


def _reasons(cells: Iterable[BoardCell]) -> str:
    """Why these cells are excluded, each reason once."""
    reasons: Collection[str] = dict.fromkeys(c.excluded for c in cells if c.excluded)
    return "; ".join(reasons)


def _met_attempts(own: Iterable[BoardCell]) -> set[tuple[str, ...]]:
    """The attacks and threats that a defense has met in each form in which it has a cell that is to count."""
    attempted = [c for c in own if c.counts or c.excluded]
    return {c.attempt for c in attempted} - {c.attempt for c in attempted if c.excluded or not _is_met(c)}


def _is_met(cell: BoardCell) -> bool:
    """Whether a cell shows what an attack does to a defense; missing seeds only widen its interval."""
    return cell.status in ("ok", "n/a", "diverged") or (
        cell.status == "mixed" and "failed" not in cell.statuses.values()
    )
