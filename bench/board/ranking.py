"""A board's cells → each defense's scores and rank.

All scores are in [0, 1], higher is better for the defender:

    utility    mean over problems of the gain over not federating that is kept, over problems that count as utility
    integrity  worst case over poisoning attacks of the share of that gain that the attack leaves
    privacy    worst case over inference attacks on clients' data of 1 − leak
    overall    mean of the three

The worst case is the cell with the lowest mean over seeds, and its score is that mean. Its interval is that of the
lowest true mean of all cells, which allows for the choice among many (`fedarena.board.lowest_mean`). The interval of
the overall score does not: it is Student's, over seeds, with the worst cells taken as given.

An adaptive attacker may still do what the paper tried: `paper` columns use cells in paper form alone, all other columns
and the ranks use cells of either form. FedAvg has no paper that an attacker could adapt to, so it meets an attack in
one form, which counts in both. The overall score is computed seed by seed, over seeds that all three scores have. Ties
are broken by cost. Scores are no tie because their intervals overlap.

A defense is ranked only if it has all three scores and has met every attack and threat that the filter admits: a worst
case over fewer attacks is no worst case. n/a counts as met (the attack had nothing to start from); failed and missing
do not. If the seeds of a cell disagree, one failed seed is enough to count as not met; otherwise failures would be
averaged away. Where every attack is n/a the worst case is 1 and belongs to no cell.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass, field, replace
from statistics import fmean

from fedarena.board.board import Board, BoardCell, BySeed
from fedarena.board.lowest_mean import lowest_mean_interval
from fedarena.board.references import measures_utility
from fedarena.board.threat_filter import ThreatFilter, threats_on
from fedarena.contracts.baseline import BASELINE
from fedarena.core.text.numbers import Mean, mean


@dataclass(frozen=True)
class Score:
    """A mean over seeds.

    Attributes:
        value: None where there is nothing to score.
        by_seed: the score of each seed that has one.
        worst: the cell that a worst case comes from.
        average: of worst cases the mean over all cells that have a score.
        cells: how many cells have a score; 0 beside a value means that no attack could start.
    """

    value: Mean | None
    by_seed: BySeed = field(default_factory=dict)
    worst: BoardCell | None = None
    average: float | None = None
    cells: int = 0

    @property
    def level(self) -> float:
        """The mean; 0 where there is nothing to score."""
        return self.value.value if self.value is not None else 0.0

    @property
    def untouched(self) -> bool:
        """Whether no attack could start, so that the score is 1 and of no cell."""
        return self.value is not None and not self.cells


@dataclass(frozen=True)
class RankingRow:
    """One defense's row of the ranking.

    Attributes:
        rank: from 1; None where the defense is not ranked.
        unranked: why it is not ranked; empty where it is.
        overall, utility, integrity, privacy: scores against attackers of either form.
        paper_integrity, paper_privacy: scores against attacks in paper form alone.
        by_party: privacy against each curious party of the filter.
        bytes: bytes up and down per client and round, over FedAvg's; mean over problems.
        seconds: training time over FedAvg's.
        counts: number of cells by status, of those that count under the filter.
        warnings: warnings of clean runs and of cells that count under the filter.
    """

    defense: str
    rank: int | None
    unranked: str
    overall: Score
    utility: Score
    integrity: Score
    privacy: Score
    paper_integrity: Score
    paper_privacy: Score
    by_party: dict[str, Score]
    bytes: float | None
    seconds: float | None
    counts: dict[str, int]
    warnings: tuple[str, ...] = ()

    def score(self, axis: str) -> Score:
        """The score of this name: overall, utility, integrity or privacy."""
        scores = {"overall": self.overall, "utility": self.utility}
        return {**scores, "integrity": self.integrity, "privacy": self.privacy}[axis]

    def paper_score(self, axis: str) -> Score:
        """The score on `integrity` or `privacy` against attacks in paper form."""
        return self.paper_integrity if axis == "integrity" else self.paper_privacy


def rank_defenses(board: Board, threats: ThreatFilter | None = None) -> list[RankingRow]:
    """Every defense's row, ranked ones first.

    Args:
        threats: by default `threats_on(board)`.
    """
    threats = threats or threats_on(board)
    tried = {c.attempt for c in board.cells if c.form == "paper"}
    rows = [_row(board, defense, threats, tried) for defense in board.defenses]

    def order(row: RankingRow) -> tuple[bool, float, float, float]:
        # Scores that agree to three digits are a tie, since a reader sees no more digits.
        return (bool(row.unranked), -round(row.overall.level, 3), row.bytes or math.inf, row.seconds or math.inf)

    ordered = sorted(rows, key=order)
    ranked = [row for row in ordered if not row.unranked]
    return [replace(row, rank=i) for i, row in enumerate(ranked, 1)] + ordered[len(ranked) :]


def warnings_of(board: Board, threats: ThreatFilter, defense: str) -> list[tuple[str, str]]:
    """(problem, warning) of a defense's clean runs and of its cells that count under the filter."""
    runs = [r for r in board.clean_runs if r.defense == defense and threats.has_problem(r.problem)]
    cells = [c for c in board.cells if c.defense == defense and threats.counts(c)]
    warned = [(run.problem, run.warnings) for run in runs] + [(c.problem, c.warnings) for c in cells]
    return [(problem, warning) for problem, warnings in warned for warning in warnings]


def worst(cells: Sequence[BoardCell]) -> Score:
    """The score of the cell with the lowest mean; 1 where there are cells and all are n/a.

    Its interval allows for the choice of the cell (`fedarena.board.lowest_mean`). It is not symmetric if there are
    several cells.
    """
    scored = [c for c in cells if c.scores]
    if not scored:
        seeds = set.intersection(*(set(c.statuses) for c in cells)) if cells else set()
        if not seeds or any(c.status != "n/a" for c in cells):
            return Score(None)
        untouched = dict.fromkeys(sorted(seeds), 1.0)
        return Score(mean(list(untouched.values())), untouched)
    # Among equals the choice must not depend on the order of cells; the paper's form comes first.
    lowest = min(scored, key=lambda c: (fmean(c.scores.values()), c.form != "paper", c.place))
    average = fmean(fmean(c.scores.values()) for c in scored)
    value = mean(list(lowest.scores.values()))
    if value.half is not None and len(scored) > 1:
        ends = lowest_mean_interval([c.scores[seed] for seed in sorted(c.scores)] for c in scored)
        value = replace(value, half=None, ends=ends)
    return Score(value, lowest.scores, lowest, average, len(scored))


def utility_problems(board: Board) -> list[str]:
    """Names of problems whose accuracy counts as utility.

    Only problems with a cell that counts are taken, since every ranked defense was tried there. On a board where no
    cell counts, all problems for utility are taken.
    """
    names = [p.name for p in board.problems if p.utility and measures_utility(p)]
    counting = {c.problem for c in board.cells if c.counts}
    return [name for name in names if name in counting] or names


def _row(board: Board, defense: str, threats: ThreatFilter, tried: Set[tuple[str, ...]]) -> RankingRow:
    """A defense's row without its rank.

    Args:
        tried: attempts in paper form on any defense.
    """
    cells = [c for c in board.cells if c.defense == defense and threats.counts(c)]
    integrity, privacy = ([c for c in cells if c.axis == axis] for axis in ("integrity", "privacy"))
    scores = {"utility": _utility(board, defense, threats), "integrity": worst(integrity), "privacy": worst(privacy)}
    counting = {name: scores[name] for name in threats.axes}
    overall = _overall(list(counting.values()))
    return RankingRow(
        defense=defense,
        rank=None,
        unranked=_unranked(board, threats, cells, counting, overall),
        overall=overall,
        utility=scores["utility"],
        integrity=scores["integrity"],
        privacy=scores["privacy"],
        paper_integrity=worst(_in_paper_form(integrity, tried)),
        paper_privacy=worst(_in_paper_form(privacy, tried)),
        by_party={p: worst([c for c in privacy if c.party == p]) for p in threats.parties},
        bytes=_relative_bytes(board, defense, threats),
        seconds=_relative_seconds(board, defense, threats),
        counts=dict(Counter(c.status for c in cells)),
        warnings=tuple(dict.fromkeys(warning for _, warning in warnings_of(board, threats, defense))),
    )


def _in_paper_form(cells: Sequence[BoardCell], tried: Set[tuple[str, ...]]) -> list[BoardCell]:
    """A defense's cells in paper form.

    Attempts that were `tried` in paper form on other defenses, and on this one in adaptive form alone, count in
    adaptive form.
    """
    only_adaptive = tried - {c.attempt for c in cells if c.form == "paper"}
    return [c for c in cells if c.form == "paper" or c.attempt in only_adaptive]


def _utility(board: Board, defense: str, threats: ThreatFilter) -> Score:
    """Mean over problems, seed by seed, over seeds that every problem has."""
    problems = [name for name in utility_problems(board) if threats.has_problem(name)]
    return _mean_of(
        [r.utility for r in board.clean_runs if r.defense == defense and r.problem in problems and r.utility]
    )


def _overall(scores: Sequence[Score]) -> Score:
    if not scores or any(s.value is None for s in scores):
        return Score(None)
    return _mean_of([s.by_seed for s in scores])


def _mean_of(parts: Sequence[BySeed]) -> Score:
    """The mean of several scores seed by seed, over seeds that all have."""
    seeds = sorted(set.intersection(*(set(p) for p in parts))) if parts else []
    by_seed = {s: fmean(p[s] for p in parts) for s in seeds}
    return Score(mean(list(by_seed.values())), by_seed, cells=len(parts)) if by_seed else Score(None)


def _relative_bytes(board: Board, defense: str, threats: ThreatFilter) -> float | None:
    """Bytes up and down over FedAvg's, mean over problems."""
    reference = {r.problem: r.bytes_up + r.bytes_down for r in board.clean_runs if r.defense == BASELINE}
    ratios = [
        (run.bytes_up + run.bytes_down) / reference[run.problem]
        for run in board.clean_runs
        if run.defense == defense
        and threats.has_problem(run.problem)
        and run.keys
        and reference.get(run.problem, 0) > 0
    ]
    return fmean(ratios) if ratios else None


def _relative_seconds(board: Board, defense: str, threats: ThreatFilter) -> float | None:
    """Training time over FedAvg's, mean over problems."""
    runs = [r for r in board.clean_runs if r.defense == defense and threats.has_problem(r.problem)]
    seconds = [r.relative_seconds for r in runs if r.relative_seconds is not None]
    return fmean(seconds) if seconds else None


def _unranked(
    board: Board, threats: ThreatFilter, cells: Sequence[BoardCell], scores: dict[str, Score], overall: Score
) -> str:
    """Why a defense has no rank; empty where it has one."""
    lacking = [name for name, score in scores.items() if score.value is None]
    if lacking:
        return f"no {' and no '.join(lacking)} score"
    if overall.value is None:
        return f"no seed that has {', '.join(scores)} all together"
    # A contributed attack against one defense lowers the score of that defense; others need not meet it.
    required = {c.attempt for c in board.cells if threats.counts(c) and not c.found_by}
    unmet = required - {c.attempt for c in cells if _met(c)}
    return f"{len(unmet)} of {len(required)} attacks and threats not met" if unmet else ""


def _met(cell: BoardCell) -> bool:
    """Whether a cell shows what an attack does to a defense; missing seeds only widen its interval."""
    return cell.status in ("ok", "n/a", "diverged") or (
        cell.status == "mixed" and "failed" not in cell.statuses.values()
    )
