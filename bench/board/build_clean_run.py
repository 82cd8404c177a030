"""The records of a defense without poisoning, over seeds → a clean run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from fedarena.board.board import BySeed, CleanRun, ProblemInfo
from fedarena.board.over_seeds import curve, rounded, seed_list, status_and_reason, status_of, warnings_in
from fedarena.board.planned_trial import PlannedTrial
from fedarena.board.references import facts
from fedarena.goals.metrics.gain import gain
from fedarena.goals.nodes import nodes_of
from fedarena.records.command import command_of
from fedarena.records.schema import Record


def clean_run(trials: Sequence[PlannedTrial], problem: ProblemInfo) -> CleanRun:
    """The clean run of these trials, one a seed."""
    runs = {t.seed: t.records[0] for t in trials if t.records}
    records = list(runs.values())
    statuses = {t.seed: status_of(t, t.records[:1]) for t in trials}
    reasons = {t.seed: t.refused or (t.records[0]["reason"] if t.records else "") for t in trials}
    status, reason = status_and_reason(statuses, reasons)
    accuracy = {seed: rounded(r["utility"]["clean_accuracy"]) for seed, r in runs.items()}
    local_only, server_only = parties_alone(runs)
    run = CleanRun(
        problem=trials[0].problem,
        defense=trials[0].defense,
        status=status,
        reason=reason,
        accuracy=accuracy,
        utility=_utility(accuracy, statuses, problem, local_only, server_only),
        bytes_up=_mean([r["cost"]["bytes_up"] for r in records]) or 0.0,
        bytes_down=_mean([r["cost"]["bytes_down"] for r in records]) or 0.0,
        relative_seconds=_mean([r["cost"]["relative_seconds"] for r in records]),
        peak_bytes=_mean([r["cost"]["peak_bytes"] for r in records]) or 0.0,
        guarantees={},
        warnings=warnings_in(records),
        curve=(),
        keys=tuple(r["key"] for r in records),
        command="",
        local_only=local_only,
        server_only=server_only,
        **_by_client(runs),
        nodes=_nodes(runs),
    )
    return _with_least_seed(run, runs[min(runs)], seed_list(runs)) if runs else run


def _with_least_seed(run: CleanRun, first: Record, seeds: str) -> CleanRun:
    """The run with the fields that the record of its least seed determines."""
    return replace(
        run,
        guarantees=dict(first["guarantees"]),
        curve=curve(first["utility"]["clean_curve"]),
        command=command_of(first, seeds),
    )


def parties_alone(runs: Mapping[int, Record]) -> tuple[BySeed, BySeed]:
    """(local-only, server-only) by seed, as the records have them."""
    references = {seed: r["utility"]["references"] for seed, r in runs.items()}
    local_only = {seed: rounded(r["local_only"]) for seed, r in references.items() if "local_only" in r}
    return local_only, {seed: rounded(r["server_only"]) for seed, r in references.items() if "server_only" in r}


def _by_client(runs: Mapping[int, Record]) -> dict[str, BySeed]:
    """The fields of accuracy by client, as the records have it."""
    found = {seed: r["by_client"] for seed, r in runs.items() if "by_client" in r}
    return {
        "client_mean": {seed: rounded(each["mean"]) for seed, each in found.items()},
        "client_lowest_decile": {seed: rounded(each["lowest_decile"]) for seed, each in found.items()},
    }


def _nodes(runs: Mapping[int, Record]) -> dict[str, BySeed]:
    """What nodes reach, by name and seed."""
    found: dict[str, BySeed] = defaultdict(dict)
    for seed, record in runs.items():
        for name, value in nodes_of(record).items():
            found[name][seed] = rounded(value)
    return dict(found)


def _utility(
    accuracy: BySeed,
    statuses: Mapping[int, str],
    problem: ProblemInfo,
    local_only: BySeed,
    server_only: BySeed,
) -> BySeed:
    """What the run keeps of FedAvg's gain, by seed (`fedarena.goals.metrics.gain`); 0 where it diverged or failed.

    The answers of a diverged model are worthless, even if some are right by chance.
    """
    utility = {}
    for seed, reached in accuracy.items():
        if seed not in problem.reference_accuracy:
            continue
        kept = gain(facts(problem, seed, local_only, server_only, reached))
        if kept is not None:
            utility[seed] = 0.0 if statuses[seed] in ("diverged", "failed") else rounded(kept)
    return utility


def _mean(values: Sequence[float | None]) -> float | None:
    """The mean of the values that are known; None where none is."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
