"""What a reader must know about a board before reading its numbers: threats, seeds, warnings, missing ranks."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from fedarena import goals
from fedarena.board.board import Board, ProblemInfo
from fedarena.board.ranking import RankingRow, warnings_of
from fedarena.board.references import gain_of_fedavg, measures_utility, no_better_than_alone
from fedarena.board.score_text import DAGGER
from fedarena.board.threat_filter import ThreatFilter, threats_on
from fedarena.core.text.numbers import mean, number, plural, with_ranges, without_numbers
from fedarena.core.threat import EVERYONE, KNOWLEDGE
from fedarena.goals.metrics.gain import gained


def threats_text(threats: ThreatFilter) -> str:
    """The threats that count."""
    return threats.description or "all threats on the board"


def problems_of(board: Board, threats: ThreatFilter) -> list[ProblemInfo]:
    """The problems that count."""
    return [p for p in board.problems if threats.has_problem(p.name)]


def curious_parties(board: Board, threats: ThreatFilter) -> list[str]:
    """Curious parties of the filter with a cell that counts on the board."""
    present = {c.party for c in board.cells if c.axis == "privacy" and c.counts}
    return [p for p in threats.parties if p in present]


def has_several_problems(board: Board) -> bool:
    """Whether results must name their problem."""
    return len({c.problem for c in board.cells} | {r.problem for r in board.clean_runs}) > 1


def seeds_text(board: Board) -> str:
    """Which seeds there are, and what they can show."""
    if not board.seeds:
        return "no seeds: nothing was measured"
    if len(board.seeds) == 1:
        return f"one seed ({board.seeds[0]}): no interval, and differences may be chance"
    return f"{plural(len(board.seeds), 'seed')} ({', '.join(map(str, board.seeds))}); intervals are 95 % over seeds"


def provenance_text(board: Board) -> str:
    """What produced the records, and when."""
    titles = {"newest": "newest record"}
    return ", ".join(f"{titles.get(name, name)} {value}" for name, value in board.provenance.items() if value)


def notes(board: Board, threats: ThreatFilter, rows: Sequence[RankingRow]) -> list[str]:
    """The board's own notes, several versions, warnings, seeds that a mean lacks, attacks by others.

    Args:
        rows: `rank_defenses(board, threats)`.
    """
    lines = [*board.notes, *_without_references(board), *_several_versions(board), *warning_lines(board, threats)]
    lines += [*_no_gain(board, threats), *_excluded(board, threats), *_no_better_than_alone(board, threats)]
    lines += [*_fewer_seeds(rows, threats), *_problems_without_scores(board, threats)]
    lines += [*_axes_left_out(board, threats), *_privacy_elsewhere(board, threats)]
    lines += _lower_and_not_counted(board, threats, rows)
    cells = [c for c in board.cells if threats.counts(c) and c.found_by]
    if by_others := sorted({f"{c.attack} ({c.found_by})" for c in cells}):
        lines.append(f"attacks by others: {', '.join(by_others)}")
    return lines


def _without_references(board: Board) -> list[str]:
    """Problems of which it was not measured what can be had without a federation, and what their scores are then."""
    names = [p.name for p in board.problems if p.reference_accuracy and not p.local_only]
    if not names:
        return []
    text = f"{', '.join(names)}: not measured what can be had without a federation; utility is accuracy over FedAvg's"
    poisoned = [c for c in board.cells if c.problem in names and c.axis == "integrity" and c.scores]
    if poisoned and not any("window_accuracy" in c.metrics for c in poisoned):
        text += ", and integrity what the last round has left of the gain over a constant answer"
    return [text]


def _no_gain(board: Board, threats: ThreatFilter) -> list[str]:
    """Problems that count as utility on which FedAvg gains nothing over not federating."""
    lines = []
    counting = {c.problem for c in board.cells if c.counts}
    for p in problems_of(board, threats):
        known = gain_of_fedavg(p) if p.name in counting else None
        if p.utility and known is not None and not measures_utility(p):
            lines.append(
                f"{p.name}: FedAvg reaches {known[0]:.3f}, and clients that train alone or a constant answer "
                f"{known[1]:.3f}: it measures no utility and no integrity"
            )
    return lines


def _excluded(board: Board, threats: ThreatFilter) -> list[str]:
    """Cells that were to count and do not, one line for each reason."""
    places: dict[str, list[str]] = {}
    for c in board.cells:
        if c.excluded and threats.admits(c):
            places.setdefault(c.excluded, []).append(f"{c.attack} on {c.defense} ({c.problem})")
    return [f"does not count: {', '.join(dict.fromkeys(where))}: {why}" for why, where in places.items()]


def _no_better_than_alone(board: Board, threats: ThreatFilter) -> list[str]:
    """Defenses whose model is not shown to be better than what can be had without a federation.

    Where FedAvg is no better than such a defense's server, the note gives the two figures.
    """
    problems = {p.name: p for p in problems_of(board, threats)}
    lines = []
    for run in board.clean_runs:
        if run.problem not in problems or not run.server_only or not no_better_than_alone(run.utility):
            continue
        reference, alone = fmean(problems[run.problem].reference_accuracy.values()), fmean(run.server_only.values())
        of_no_use = f"; FedAvg reaches {reference:.3f}, and its server alone {alone:.3f}"
        line = f"{run.defense} on {run.problem}: no better than what its server or its clients reach alone"
        lines.append(line if gained(reference, alone) else line + of_no_use)
    return lines


def _fewer_seeds(rows: Sequence[RankingRow], threats: ThreatFilter) -> list[str]:
    """Defenses whose mean has fewer seeds than its parts, so that it is not the mean of the parts shown."""
    lines = []
    for row in rows:
        by_axis = {axis: row.score(axis).by_seed for axis in threats.axes}
        seeds = set().union(*by_axis.values())
        lacking = seeds - set(row.overall.by_seed)
        if row.overall.by_seed and lacking:
            axes = [axis for axis, scores in by_axis.items() if lacking - set(scores)]
            over = f"{len(seeds) - len(lacking)} of {len(seeds)} seeds"
            lines.append(f"{row.defense}: its mean is over {over}, since on others it has no {' or '.join(axes)}")
    return lines


def _problems_without_scores(board: Board, threats: ThreatFilter) -> list[str]:
    """Problems of the filter whose attacks count in no score."""
    admitted = {c.problem for c in board.cells if threats.admits(c)}
    counting = {c.problem for c in board.cells if threats.counts(c)}
    names = [p.name for p in board.problems if p.name in admitted - counting]
    return [f"{name}: its attacks are on the board and count in no score" for name in names]


def _axes_left_out(board: Board, threats: ThreatFilter) -> list[str]:
    """Axes with cells of which none counts, where the reader has not chosen them away."""
    if threats != threats_on(board, threats.problems):
        return []
    lines = []
    for axis in ("integrity", "privacy"):
        cells = [c for c in board.cells if c.axis == axis and threats.has_problem(c.problem)]
        if cells and axis not in threats.axes:
            reasons = dict.fromkeys(c.excluded for c in cells if c.excluded)
            why = f": {'; '.join(reasons)}" if reasons else ""
            lines.append(
                f"{axis} is left out of the ranking, since none of its {plural(len(cells), 'cell')} counts{why}"
            )
    return lines


def _privacy_elsewhere(board: Board, threats: ThreatFilter) -> list[str]:
    """Problems that count as utility and on which no attack on privacy counts, where it counts on others.

    A defense sees its federation, so that it could send nothing where it is attacked, and be useful where it is not.
    """
    counting = [c for c in board.cells if threats.counts(c)]
    attacked = {c.problem for c in counting if c.axis == "privacy"}
    others = {c.problem for c in counting} - attacked
    names = [p.name for p in problems_of(board, threats) if p.utility and p.name in others]
    if not attacked or not names:
        return []
    return [f"{', '.join(names)}: counts as utility, and its privacy was not attacked: a defense may send more there"]


def _lower_and_not_counted(board: Board, threats: ThreatFilter, rows: Sequence[RankingRow]) -> list[str]:
    """Cells that the suite does not count and that are lower than what a ranked defense is ranked by."""
    scores = {row.defense: row for row in rows if not row.unranked}
    found: dict[tuple[str, str, float], list[str]] = {}
    for c in board.cells:
        if c.counts or c.excluded or c.defense not in scores or not c.scores or not threats.admits(c):
            continue
        shown = scores[c.defense].score(c.axis)
        score = mean(list(c.scores.values()))
        if goals.recorded(c.goal).of_data and shown.value is not None and round(score.value, 2) < round(shown.level, 2):
            attack = f"{c.attack} on {c.problem} ({c.threat}) leaves {number(score)}"
            found.setdefault((c.defense, c.axis, shown.level), []).append(attack)
    return [
        f"{defense}: its {axis} of {level:.2f} leaves out cells that the suite does not count: {', '.join(attacks)}"
        for (defense, axis, level), attacks in found.items()
    ]


def _several_versions(board: Board) -> list[str]:
    """Records of several versions differ by more than their seeds."""
    lines = []
    for name, what in (("fedarena", "versions of fedarena"), ("commit", "commits"), ("torch", "versions of torch")):
        versions = [version for version in board.provenance.get(name, "").split(", ") if version]
        if len(versions) > 1:
            lines.append(f"measured by {len(versions)} {what}: {', '.join(versions)}")
    return lines


def warning_lines(board: Board, threats: ThreatFilter | None = None) -> list[str]:
    """Subsets of data, and the warnings of runs with the defenses that have them."""
    threats = threats or ThreatFilter()
    subsets = [f"{p.name}: a subset of the data, {p.subset}" for p in problems_of(board, threats) if p.subset]
    names: dict[str, list[str]] = {}
    for defense in board.defenses:
        for warning, problems in _problems_by_warning(board, threats, defense).items():
            names.setdefault(warning, []).append(f"{defense} on {', '.join(problems)}" if problems else defense)
    return subsets + [f"{DAGGER} {', '.join(defenses)}: {warning}" for warning, defenses in names.items()]


def _problems_by_warning(board: Board, threats: ThreatFilter, defense: str) -> dict[str, list[str]]:
    """A defense's warnings, with the problems where each applies; [] where it applies to all of its runs.

    Warnings that differ in their numbers alone are one, with ranges.
    """
    warnings = warnings_of(board, threats, defense)
    runs = {r.problem for r in board.clean_runs if r.defense == defense and threats.has_problem(r.problem)}
    by_shape: dict[str, list[tuple[str, str]]] = {}
    for problem, warning in warnings:
        by_shape.setdefault(without_numbers(warning), []).append((problem, warning))
    by_warning = {}
    for alike in by_shape.values():
        problems = list(dict.fromkeys(problem for problem, _ in alike))
        by_warning[with_ranges([warning for _, warning in alike])] = [] if runs <= set(problems) else problems
    return by_warning


def unmeasured_threats(board: Board, threats: ThreatFilter) -> list[str]:
    """Threats of the filter that no attack on the board poses."""
    cells = [c for c in board.cells if threats.counts(c)]
    parties = {c.party for c in cells if c.axis == "privacy"}
    levels = {c.knows for c in cells if c.axis == "integrity"}
    return [f"a curious {p}" for p in EVERYONE if p in threats.parties and p not in parties] + [
        # Corrupted clients without any data are a weaker threat than all others.
        f"corrupted clients ({k})"
        for k in KNOWLEDGE[1:]
        if k in threats.knows and k not in levels
    ]


def unranked_lines(rows: Sequence[RankingRow]) -> list[str]:
    """The defenses without a rank, one line for each reason."""
    defenses: dict[str, list[str]] = {}
    for row in rows:
        if row.unranked:
            defenses.setdefault(row.unranked, []).append(row.defense)
    return [f"No rank: {', '.join(names)}: {reason}" for reason, names in defenses.items()]
