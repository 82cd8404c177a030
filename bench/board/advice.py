"""Which defense to take under a threat filter, and why, in sentences that claim no more than the board has measured."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from fedarena.board.board import Board, BoardCell
from fedarena.board.differences import comparison_with_best
from fedarena.board.notes import curious_parties, has_several_problems, threats_text, unmeasured_threats
from fedarena.board.phrases import attacker, join_and, join_or, shortened
from fedarena.board.ranking import RankingRow, rank_defenses
from fedarena.board.recommendation import WITHSTOOD, choice, runner_up, weaknesses
from fedarena.board.score_text import counts
from fedarena.board.threat_filter import ThreatFilter, threats_on
from fedarena.board.weights import Weights
from fedarena.contracts.baseline import BASELINE


def advice(
    board: Board,
    threats: ThreatFilter | None = None,
    rows: Sequence[RankingRow] | None = None,
    weights: Weights | None = None,
) -> list[str]:
    """Sentences for a reader with these threats: what to take and why, what is as good, what no defense withstands.

    Args:
        threats: by default `threats_on(board)`.
        rows: `rank_defenses(board, threats, weights)`, if the caller has computed it.
        weights: the reader's, where the lowest score is not to decide.
    """
    threats = threats or threats_on(board)
    rows = rank_defenses(board, threats, weights) if rows is None else rows
    if not rows:
        return ["No records: nothing was measured, so nothing can be said about any defense."]
    ranked = [row for row in rows if row.rank is not None]
    if ranked:
        sentences = [choice(board, threats, rows, weights), *weaknesses(threats, ranked)]
        sentences += [runner_up(board, threats, ranked, weights), comparison_with_best(ranked), _without_rank(rows)]
    else:
        sentences = [_no_recommendation(board, threats, rows)]
    cells = [c for c in board.cells if threats.counts(c)]
    sentences += [_unfinished(cells), _unbeaten(board, cells), _nothing_known(board, threats) if cells else ""]
    return [sentence for sentence in sentences if sentence]


def summary(board: Board, threats: ThreatFilter, rows: Sequence[RankingRow]) -> str:
    """How much was measured: defenses, cells by status, curious parties."""
    total: dict[str, int] = {}
    for row in rows:
        for status, n in row.counts.items():
            total[status] = total.get(status, 0) + n
    parties = [f"the {party}" for party in curious_parties(board, threats)]
    curious = f"; inference by {join_and(parties)}" if parties else ""
    return f"{len(rows)} defenses, cells: {counts(total)}{curious}"


def _no_recommendation(board: Board, threats: ThreatFilter, rows: Sequence[RankingRow]) -> str:
    cells = [c for c in board.cells if threats.counts(c)]
    begin = f"No defense can be recommended for {threats_text(threats)}: none has a rank"
    if cells and all(c.status in ("failed", "missing") for c in cells):
        begin += f", since none of the {len(cells)} cells gave a result"
    elif not cells and threats.axes != ("utility",):
        begin += ", since no attack that counts poses these threats"
    defenses: dict[str, list[str]] = {}
    for row in rows:
        defenses.setdefault(row.unranked, []).append(row.defense)
    return f"{begin} ({'; '.join(f'{join_and(names)}: {reason}' for reason, names in defenses.items())})."


def _without_rank(rows: Sequence[RankingRow]) -> str:
    """The defenses without a rank, for a reader who looks for them."""
    names = [row.defense for row in rows if row.rank is None and row.defense != BASELINE]
    return f"Without a rank, and so not compared: {join_and(shortened(names))}." if names else ""


def _unfinished(counting: Sequence[BoardCell]) -> str:
    """How many of the planned trials are missing."""
    statuses = [status for c in counting for status in c.statuses.values()]
    missing = statuses.count("missing")
    if not missing:
        return ""
    return f"Warning: {missing} of {len(statuses)} trials are missing, and their results may change all of this."


def _unbeaten(board: Board, counting: Sequence[BoardCell]) -> str:
    """Attacks that leave even the best defense less than WITHSTOOD, the strongest first."""
    attempts: dict[tuple[str, ...], list[BoardCell]] = {}
    for c in counting:
        if c.status not in ("failed", "missing") and c.defense != BASELINE:
            attempts.setdefault(c.attempt, []).append(c)
    defenses = {c.defense for c in counting if not c.found_by} - {BASELINE}
    unbeaten = []
    for (problem, attack, party, knowledge), cells in attempts.items():
        left = _left_by_defense(cells)
        best = max(left, key=lambda name: left[name])
        if left[best] < WITHSTOOD:
            where = f" on {problem}" if has_several_problems(board) else ""
            most = f"best: {best}, {left[best]:.2f}" if left[best] >= 0.005 else "all are left with 0.00"
            most += f"; {len(left)} of {len(defenses)} defenses met it" if set(left) < defenses else ""
            unbeaten.append((left[best], f"{attack} by {attacker(party, knowledge)}{where} ({most})"))
    if not unbeaten:
        return ""
    texts = [text for _, text in sorted(unbeaten)]
    return f"No defense keeps {WITHSTOOD} against: {'; '.join(shortened(texts))}."


def _left_by_defense(cells: Sequence[BoardCell]) -> dict[str, float]:
    """What one attack leaves of each defense, in the form that leaves less."""
    left: dict[str, float] = {}
    for c in cells:
        value = fmean(c.scores.values()) if c.scores else 1.0
        left[c.defense] = min(value, left.get(c.defense, 1.0))
    return left


def _nothing_known(board: Board, threats: ThreatFilter) -> str:
    """The threats of the filter that no attack poses; all threats where the reader named none."""
    default = threats == threats_on(board, threats.problems)
    unmeasured = unmeasured_threats(board, ThreatFilter(problems=threats.problems) if default else threats)
    if not unmeasured:
        return ""
    return f"Nothing is known about {join_or(unmeasured)}: no attack that counts poses this threat."
