"""A board's cells → each defense's scores and rank.

All scores are in [0, 1], higher is better for the defender:

    utility    mean over problems of the gain over not federating that is kept, over problems that count as utility
    integrity  worst case over poisoning attacks of the share of that gain that the attack leaves
    privacy    worst case over inference attacks on clients' data of 1 − leak
    lowest     the lowest of the three, by which defenses are ranked
    overall    mean of the three, which stands beside it
    weighted   a mean by a reader's weights, by which defenses are ranked where there are weights

So a defense that is good on two axes cannot lead with nothing on the third. An axis on which the filter has no threat
does not count in lowest, overall and weighted.

The worst case is the cell with the lowest mean over seeds, and its score is that mean. Its interval is that of the
lowest true mean of all cells, which allows for the choice among many (`fedarena.board.lowest_mean`). The interval of
`lowest` is made in the same way, of the cells of both axes and of utility. Those of overall and weighted do not allow
for the choice: they are Student's, over seeds that all their parts have, with the worst cells taken as given.

An adaptive attacker may still do what the paper tried: `paper` columns use cells in paper form alone, all other columns
and the ranks use cells of either form. FedAvg has no paper that an attacker could adapt to, so it meets an attack in
one form, which counts in both. Where every attack is n/a the worst case is 1 and belongs to no cell.

A rank is a range (`fedarena.board.rank_range`), and `fedarena.board.unranked` says who has none. Neither has FedAvg,
which is no defense, nor one that gains nothing over not federating (`fedarena.board.references.without_gain`).

Rows are in the order of the point values to three digits. Among equals the second lowest score decides, and then the
third: a defense that is good for one thing alone stands below one that is worth a little on two. With a reader's
weights the overall score does. Then fewer bytes come first, then less time.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from statistics import fmean

from fedarena.board.board import Board, BoardCell, BySeed
from fedarena.board.lowest_mean import lowest_mean_interval
from fedarena.board.rank_range import DIGITS, RankRange, rank_ranges
from fedarena.board.references import measures_utility, without_gain
from fedarena.board.threat_filter import ThreatFilter, threats_on
from fedarena.board.unranked import required_attempts, unranked
from fedarena.board.weights import Weights, used_weights
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
        rank: None where the defense is not ranked.
        unranked: why it is not ranked; empty where it is.
        lowest, overall, utility, integrity, privacy: scores against attackers of either form.
        lowest_axis: the axis that `lowest` comes from; empty where it has no value.
        paper_integrity, paper_privacy: scores against attacks in paper form alone.
        by_party: privacy against each curious party of the filter.
        bytes: bytes up and down per client and round, over FedAvg's; mean over problems.
        seconds: training time over FedAvg's.
        counts: number of cells by status, of those that count under the filter.
        warnings: warnings of clean runs and of cells that count under the filter.
        weighted: the mean by the reader's weights; None where there are none.
    """

    defense: str
    rank: RankRange | None
    unranked: str
    lowest: Score
    lowest_axis: str
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
    weighted: Score | None = None

    @property
    def deciding(self) -> Score:
        """The score by which it is ranked."""
        return self.lowest if self.weighted is None else self.weighted

    def score(self, axis: str) -> Score:
        """The score of this name: lowest, overall, utility, integrity or privacy."""
        scores = {"lowest": self.lowest, "overall": self.overall, "utility": self.utility}
        return {**scores, "integrity": self.integrity, "privacy": self.privacy}[axis]

    def paper_score(self, axis: str) -> Score:
        """The score on `integrity` or `privacy` against attacks in paper form."""
        return self.paper_integrity if axis == "integrity" else self.paper_privacy


def rank_defenses(
    board: Board, threats: ThreatFilter | None = None, weights: Weights | None = None
) -> list[RankingRow]:
    """Every defense's row, ranked ones first.

    Args:
        threats: by default `threats_on(board)`.
        weights: None ranks by the lowest score.
    """
    threats = threats or threats_on(board)
    shared = _Shared(
        tried=frozenset(c.attempt for c in board.cells if c.form == "paper"),
        required=frozenset(required_attempts(board, threats)),
        useful=tuple(name for name in utility_problems(board) if threats.has_problem(name)),
    )
    rows = [_row(board, defense, threats, weights, shared) for defense in board.defenses]
    ordered = sorted(rows, key=lambda row: (bool(row.unranked), *order(row, threats.axes)))
    ranked = [row for row in ordered if not row.unranked]
    ranges = rank_ranges([row.deciding.value for row in ranked if row.deciding.value is not None])
    numbered = [replace(row, rank=rank) for row, rank in zip(ranked, ranges, strict=True)]
    return numbered + ordered[len(ranked) :]


def order(row: RankingRow, axes: Sequence[str]) -> tuple[float, ...]:
    """The place among the rows with a rank, least first."""
    if row.weighted is None:
        levels = sorted(row.score(axis).level for axis in axes)
    else:
        levels = [row.weighted.level, row.overall.level]
    scores = (-round(level, DIGITS) for level in levels)
    return (*scores, row.bytes or math.inf, row.seconds or math.inf)


def warnings_of(board: Board, threats: ThreatFilter, defense: str) -> list[tuple[str, str]]:
    """(problem, warning) of a defense's clean runs and of its cells that count under the filter."""
    runs = [r for r in board.clean_runs if r.defense == defense and threats.has_problem(r.problem)]
    cells = [c for c in board.cells_of.get(defense, ()) if threats.counts(c)]
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


@dataclass(frozen=True)
class _Shared:
    """What is the same for all defenses.

    Attributes:
        tried: attempts in paper form on any defense.
        required: `required_attempts(board, threats)`.
        useful: the problems of the filter whose accuracy counts as utility.
    """

    tried: frozenset[tuple[str, ...]]
    required: frozenset[tuple[str, ...]]
    useful: tuple[str, ...]


def _row(board: Board, defense: str, threats: ThreatFilter, weights: Weights | None, shared: _Shared) -> RankingRow:
    """A defense's row without its rank."""
    cells = [c for c in board.cells_of[defense] if threats.counts(c)]
    integrity, privacy = ([c for c in cells if c.axis == axis] for axis in ("integrity", "privacy"))
    scores = {
        "utility": _utility(board, defense, shared.useful),
        "integrity": worst(integrity),
        "privacy": worst(privacy),
    }
    counting = {name: scores[name] for name in threats.axes}
    axis, lowest = _lowest(counting, [c for c in cells if c.axis in counting])
    weighted = None if weights is None else _weighted(counting, weights)
    return RankingRow(
        defense=defense,
        rank=None,
        unranked=_why_unranked(board, defense, threats, counting, weighted, shared),
        lowest=lowest,
        lowest_axis=axis,
        overall=_mean_of([score.by_seed for score in counting.values()]),
        utility=scores["utility"],
        integrity=scores["integrity"],
        privacy=scores["privacy"],
        paper_integrity=worst(_in_paper_form(integrity, shared.tried)),
        paper_privacy=worst(_in_paper_form(privacy, shared.tried)),
        by_party={p: worst([c for c in privacy if c.party == p]) for p in threats.parties},
        bytes=_relative_bytes(board, defense, threats),
        seconds=_relative_seconds(board, defense, threats),
        counts=dict(Counter(c.status for c in cells)),
        warnings=tuple(dict.fromkeys(warning for _, warning in warnings_of(board, threats, defense))),
        weighted=weighted,
    )


def _why_unranked(
    board: Board,
    defense: str,
    threats: ThreatFilter,
    counting: Mapping[str, Score],
    weighted: Score | None,
    shared: _Shared,
) -> str:
    """Why a defense has no rank; empty where it has one."""
    if defense == BASELINE:
        return "it is no defense, and stands for comparison"
    lacking = [name for name, score in counting.items() if score.value is None]
    reason = unranked(board, threats, defense, lacking, shared.required)
    if not reason and weighted is not None and weighted.value is None:
        return "no seed that has all scores with a weight"
    if not reason and "utility" in counting:
        return without_gain(board, defense, shared.useful)
    return reason


def _in_paper_form(cells: Sequence[BoardCell], tried: Set[tuple[str, ...]]) -> list[BoardCell]:
    """A defense's cells in paper form.

    Attempts that were `tried` in paper form on other defenses, and on this one in adaptive form alone, count in
    adaptive form.
    """
    only_adaptive = tried - {c.attempt for c in cells if c.form == "paper"}
    return [c for c in cells if c.form == "paper" or c.attempt in only_adaptive]


def _utility(board: Board, defense: str, problems: Sequence[str]) -> Score:
    """Mean over problems, seed by seed, over seeds that every problem has."""
    return _mean_of(
        [r.utility for r in board.clean_runs if r.defense == defense and r.problem in problems and r.utility]
    )


def _lowest(counting: Mapping[str, Score], cells: Sequence[BoardCell]) -> tuple[str, Score]:
    """The axis with the lowest score, and that score with the interval of the lowest true mean of all its parts.

    Args:
        counting: the scores that count; among equals the first one is taken.
        cells: the cells of these axes.
    """
    if any(score.value is None for score in counting.values()):
        return "", Score(None)
    axis = min(counting, key=lambda name: counting[name].level)
    score = counting[axis]
    parts = [counting["utility"].by_seed, *(c.scores for c in cells if c.scores)]
    if score.value is not None and score.value.interval is not None and len(parts) > 1:
        ends = lowest_mean_interval([part[seed] for seed in sorted(part)] for part in parts)
        score = replace(score, value=replace(score.value, half=None, ends=ends))
    return axis, replace(score, average=None, cells=len(parts))


def _weighted(counting: Mapping[str, Score], weights: Weights) -> Score:
    """The weighted mean seed by seed, over seeds that all scores with a weight have."""
    used = used_weights(counting, weights)
    if not used:
        return Score(None)
    seeds = sorted(set.intersection(*(set(counting[axis].by_seed) for axis in used)))
    by_seed = {
        s: math.fsum(weight * counting[axis].by_seed[s] for axis, weight in used.items()) / math.fsum(used.values())
        for s in seeds
    }
    return Score(mean(list(by_seed.values())), by_seed, cells=len(used)) if by_seed else Score(None)


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
