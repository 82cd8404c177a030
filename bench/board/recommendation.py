"""Which of the ranked defenses to take, what speaks against it, and what the next one is."""

from __future__ import annotations

from collections.abc import Sequence

from fedarena.board.board import Board
from fedarena.board.differences import difference
from fedarena.board.notes import has_several_problems, threats_text
from fedarena.board.phrases import attack_text, difference_text, join_and
from fedarena.board.rank_range import DIGITS
from fedarena.board.rank_rule import deciding_name
from fedarena.board.ranking import RankingRow, order
from fedarena.board.score_text import score, times
from fedarena.board.threat_filter import ThreatFilter
from fedarena.board.unranked import required_attempts, unranked
from fedarena.board.weights import Weights
from fedarena.contracts.baseline import BASELINE

WITHSTOOD = 0.5
"""A defense with a lower score does not withstand a threat."""

CLOSE = 0.0005
"""Scores that differ by no more look the same to a reader."""


def choice(board: Board, threats: ThreatFilter, rows: Sequence[RankingRow], weights: Weights | None = None) -> str:
    """The defense to take, with its scores, its worst cases, its cost and its warnings.

    Args:
        rows: all rows, of which the first has a rank.
    """
    best = rows[0]
    scores = join_and([f"{axis} {score(best.score(axis))}" for axis in threats.axes])
    if len(threats.axes) > 1:
        scores = f"{deciding_name(weights)} {score(best.deciding)}; {scores}; mean {score(best.overall)}"
    sentences = [f"For {threats_text(threats)}: {_take(board, threats, rows, weights)} ({scores})."]
    for axis in threats.axes:
        worst = best.score(axis).worst
        if worst is not None:
            case = attack_text(worst, has_several_problems(board))
            sentences.append(f"Its worst case of {axis} is {case}, which leaves {score(best.score(axis))}.")
    untouched = [axis for axis in threats.attacked_axes if not best.score(axis).cells]
    if untouched:
        axes = join_and(untouched)
        sentences.append(f"Of the attacks on {axes} none could start against it, which is no proof that none can.")
    sentences.append(_cost(best, "It costs"))
    runs = [run for run in board.clean_runs if run.defense == best.defense]
    if warnings := list(dict.fromkeys(warning for run in runs for warning in run.warnings)):
        sentences.append(f"Its numbers have a warning: {'; '.join(warnings)}.")
    return " ".join(sentences)


def _take(board: Board, threats: ThreatFilter, rows: Sequence[RankingRow], weights: Weights | None) -> str:
    """The first words of a recommendation. They say so if even the best defense is not good."""
    best = rows[0].defense
    if not beats_baseline(board, rows, threats):
        return f"no defense here scores above plain {BASELINE}, which is none; {best} comes next"
    if len(threats.axes) > 1 and not any(_withstands(row, threats) for row in rows if row.rank is not None):
        leads = "comes nearest" if weights is None else f"has the highest {deciding_name(weights)}"
        return f"no defense here keeps {WITHSTOOD} of each; {best} {leads}"
    return f"take {best}"


def beats_baseline(board: Board, rows: Sequence[RankingRow], threats: ThreatFilter) -> bool:
    """Whether the first of the rows, which has a rank, stands above FedAvg, or FedAvg has not met all that counts."""
    plain = next((row for row in rows if row.defense == BASELINE), None)
    if (
        plain is None
        or plain.deciding.value is None
        or unranked(board, threats, BASELINE, [], required_attempts(board, threats))
    ):
        return True
    return order(rows[0], threats.axes) < order(plain, threats.axes)


def _withstands(row: RankingRow, threats: ThreatFilter) -> bool:
    """Whether a defense withstands every threat of the filter."""
    return all(row.score(axis).value is not None and row.score(axis).level >= WITHSTOOD for axis in threats.axes)


def weaknesses(threats: ThreatFilter, ranked: Sequence[RankingRow]) -> list[str]:
    """A warning for each low score of the best defense."""
    return [_weakness(axis, ranked) for axis in threats.axes if ranked[0].score(axis).level < WITHSTOOD]


def _weakness(axis: str, ranked: Sequence[RankingRow]) -> str:
    """The best defense's low score on an axis, and the defense that has the highest."""
    own = ranked[0].score(axis)
    best = max(ranked, key=lambda row: row.score(axis).level)
    most = best.score(axis)
    if most.level <= own.level + CLOSE:
        return f"Warning: its {axis} is {score(own)}, and no ranked defense has more."
    return (
        f"Warning: its {axis} is {score(own)}. Of the ranked defenses {best.defense} has the most, {score(most)}, "
        f"and its lowest score is {score(best.lowest)}."
    )


def runner_up(board: Board, threats: ThreatFilter, ranked: Sequence[RankingRow], weights: Weights | None = None) -> str:
    """The second defense, where it is worse and better than the first, and its cost."""
    if len(ranked) < 2:
        return "It is the only defense with a rank, so there is nothing to compare it with."
    best, other = ranked[:2]
    lower = difference(best.deciding, other.deciding)
    text = f"The next, {other.defense}, has {deciding_name(weights)} {score(other.deciding)}"
    if lower is not None and lower.value > CLOSE:
        text += f", {difference_text(lower)} lower"
    if round(best.deciding.level, DIGITS) == round(other.deciding.level, DIGITS):
        text += f", the same to three digits: {_tie_breaker(threats.axes, best, other)}"
    losses = {axis: best.score(axis).level - other.score(axis).level for axis in threats.axes}
    largest = max(losses, key=lambda axis: losses[axis])
    if losses[largest] > CLOSE:
        worst = other.score(largest).worst
        after = f" after {attack_text(worst, has_several_problems(board))}" if worst is not None else ""
        text += f"; it loses most in {largest}, where it has {score(other.score(largest))}{after}"
    gains = [f"{axis} {score(other.score(axis))}" for axis in threats.axes if losses[axis] < -CLOSE]
    text += f", and is the better one in {join_and(gains)}" if gains else ""
    return f"{text}. {_cost(other, 'It would cost')}"


def _tie_breaker(axes: Sequence[str], best: RankingRow, other: RankingRow) -> str:
    """What decides between two defenses whose deciding scores are a tie."""
    if best.weighted is not None:
        if round(best.overall.level, DIGITS) != round(other.overall.level, DIGITS):
            return f"the mean decides, {score(best.overall)} against {score(other.overall)}"
        return "cost decides"
    scores = [sorted((row.score(axis) for axis in axes), key=lambda s: s.level) for row in (best, other)]
    for ours, theirs in zip(*scores, strict=True):
        if round(ours.level, DIGITS) != round(theirs.level, DIGITS):
            return f"the next lowest decides, {score(ours)} against {score(theirs)}"
    return "cost decides"


def _cost(row: RankingRow, begin: str) -> str:
    parts = [f"{times(row.bytes)} FedAvg's bytes"] if row.bytes is not None else []
    parts += [f"{times(row.seconds)} its training time"] if row.seconds is not None else []
    return f"{begin} {join_and(parts)}." if parts else "What it costs was not measured."
