"""The records of one attack on one defense under one threat, over seeds and readings → a cell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from fedarena import goals
from fedarena.board.board import BoardCell, BySeed, CleanRun, ProblemInfo
from fedarena.board.exclusion import silent, uninformative, untuned
from fedarena.board.over_seeds import curve, rounded, seed_list, status_and_reason, status_of, warnings_in
from fedarena.board.planned_trial import PlannedTrial
from fedarena.core.files import digest
from fedarena.records.command import command_of
from fedarena.records.reading_names import belongs, names_of
from fedarena.records.schema import Record
from fedarena.records.trial_key import hashed_problem


@dataclass(frozen=True)
class ShownReading:
    """The reading that a cell shows, which is the one with the lowest mean score.

    Attributes:
        name: its name; empty where attacks have no readings.
        records: its records by seed.
        scores: its scores by seed.
        others: mean scores of the other readings, by name.
    """

    name: str
    records: dict[int, list[Record]]
    scores: BySeed
    others: dict[str, float]

    @property
    def by_seed(self) -> dict[int, Record]:
        """One record a seed, of seeds that have one."""
        return {seed: records[0] for seed, records in self.records.items() if records}


def board_cell(trials: Sequence[PlannedTrial], run: CleanRun | None, problem: ProblemInfo) -> BoardCell:
    """The cell of these trials, one a seed.

    Args:
        run: the clean run of the same defense, whose warnings the cell does not repeat.
    """
    trial = trials[0]
    goal = goals.recorded(trial.goal)
    shown = _shown_reading(trials, goal.axis)
    records = shown.by_seed
    first = records[min(records)] if records else None
    statuses = {t.seed: status_of(t, shown.records[t.seed]) for t in trials}
    reasons = {t.seed: t.refused or (records[t.seed]["reason"] if t.seed in records else "") for t in trials}
    status, reason = status_and_reason(statuses, reasons)
    to_count = trial.counts and goal.of_data
    excluded = _excluded(goal.axis, trials, records, run, problem) if to_count else ""
    cell = BoardCell(
        problem=trial.problem,
        defense=trial.defense,
        attack=trial.attack,
        axis=goal.axis,
        goal=trial.goal,
        party=trial.party,
        form=trial.form,
        knows=trial.knows,
        status=status,
        reason=reason,
        statuses=statuses,
        reading=shown.name,
        scores=shown.scores,
        metrics=_metrics(records),
        keys={seed: record["key"] for seed, record in records.items()},
        other_readings=shown.others,
        counts=to_count and not excluded,
        excluded=excluded,
        warnings=tuple(w for w in warnings_in(list(records.values())) if run is None or w not in run.warnings),
    )
    return cell if first is None else replace(cell, **_from_least_seed(first, seed_list(records)))


def _excluded(
    axis: str,
    trials: Sequence[PlannedTrial],
    records: Mapping[int, Record],
    run: CleanRun | None,
    problem: ProblemInfo,
) -> str:
    """Why a cell that is to count does not; empty where it does.

    Args:
        trials: all of the cell. records: those of the reading shown, by seed.
    """
    if axis == "integrity":
        return untuned(records)
    if hidden := silent(record for trial in trials for record in trial.records):
        return hidden
    return uninformative(run.accuracy, problem.chance) if run is not None and records else ""


def _from_least_seed(first: Record, seeds: str) -> dict[str, Any]:
    """The fields of a cell that the record of its least seed determines."""
    options = {name: value for name, value in first["options"].items() if not name.startswith(("attack", "probe"))}
    return {
        "curve": curve(first["attacked"].get("curve", [])),
        "series": {name: [[rounded(x) for x in point] for point in points] for name, points in first["series"].items()},
        # A defense of another package is no reason to name its author for this package's attack on it.
        "found_by": "; ".join(f"{n}: {who}" for n, who in first["origins"].items() if n in first["attack"].split("+")),
        # Digests leave out seeds and versions.
        "settings": digest([hashed_problem(first["problem"]), first["options"], *_of_attacked(first)], 12),
        "defense_settings": digest([hashed_problem(first["problem"]), options], 12),
        "versions": dict(first["versions"]),
        "command": command_of(first, seeds),
    }


def _of_attacked(record: Record) -> list[str]:
    """What settings say beside options; nothing where the attack read the rounds that it chose and no others."""
    return ["other rounds"] if "other_rounds" in record else []


def _shown_reading(trials: Sequence[PlannedTrial], axis: str) -> ShownReading:
    """Of several readings the one with the lowest mean score; without any score the first one."""
    names = names_of([record for trial in trials for record in trial.records])
    records = {name: {t.seed: [r for r in t.records if belongs(r, name)] for t in trials} for name in names or [""]}
    scores = {name: _scores(by_seed, axis) for name, by_seed in records.items()}
    means = {name: fmean(values.values()) for name, values in scores.items() if values}
    shown = min(means, key=lambda name: means[name]) if means else next(iter(records))
    others = {name: rounded(value) for name, value in means.items() if name != shown}
    return ShownReading(shown, records[shown], scores[shown], others)


def _scores(records: Mapping[int, Sequence[Record]], axis: str) -> BySeed:
    first = {seed: some[0] for seed, some in records.items() if some}
    return {seed: rounded(r["scores"][axis]) for seed, r in first.items() if axis in r["scores"]}


def _metrics(records: Mapping[int, Record]) -> dict[str, BySeed]:
    metrics: dict[str, BySeed] = defaultdict(dict)
    for seed, record in records.items():
        for name, value in record["metrics"].items():
            metrics[name][seed] = rounded(value)
        if record["attacker_knowledge"] and "by_client" in record:
            metrics["client_mean"][seed] = rounded(record["by_client"]["mean"])
            metrics["client_lowest_decile"][seed] = rounded(record["by_client"]["lowest_decile"])
    return dict(metrics)
