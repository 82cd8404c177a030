"""Trials and their records → a board."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from fedarena.board.board import Board, ProblemInfo
from fedarena.board.build_cell import board_cell
from fedarena.board.build_clean_run import clean_run, parties_alone
from fedarena.board.over_seeds import rounded
from fedarena.board.planned_trial import PlannedTrial
from fedarena.records.schema import Record


def build(suite: str, title: str, trials: Sequence[PlannedTrial], notes: Iterable[str] = ()) -> Board:
    """The board of these trials."""
    names = dict.fromkeys(t.problem for t in trials)
    problems = tuple(_problem_info(name, [t for t in trials if t.clean and t.problem == name]) for name in names)
    by_name = {problem.name: problem for problem in problems}
    runs: dict[tuple[str, str], list[PlannedTrial]] = defaultdict(list)
    attacks: dict[tuple[str, ...], list[PlannedTrial]] = defaultdict(list)
    for t in trials:
        if t.clean:
            runs[t.run].append(t)
        else:
            attacks[t.cell].append(t)
    clean_runs = {place: clean_run(some, by_name[place[0]]) for place, some in runs.items()}
    return Board(
        suite=suite,
        title=title,
        seeds=tuple(sorted({t.seed for t in trials})),
        problems=problems,
        clean_runs=tuple(clean_runs.values()),
        cells=tuple(
            board_cell(some, clean_runs.get(some[0].run), by_name[some[0].problem]) for some in attacks.values()
        ),
        provenance=_provenance([r for t in trials for r in t.records]),
        notes=tuple(notes),
    )


def _problem_info(name: str, clean: Sequence[PlannedTrial]) -> ProblemInfo:
    """A problem as the records of its clean runs describe it."""
    references = {t.seed: t.records[0] for t in clean if t.reference and t.records}
    records = [*references.values(), *(t.records[0] for t in clean if t.records)]
    if not records:
        return ProblemInfo(
            name=name,
            description="nothing measured",
            dataset="",
            measure="accuracy",
            chance=0.0,
            reference_accuracy={},
        )
    utility, problem = records[0]["utility"], records[0]["problem"]
    return ProblemInfo(
        name=name,
        description=_description(records[0]),
        dataset=problem["dataset"],
        measure=utility["measure"],
        chance=rounded(utility["chance"]),
        # A run that diverged is no reference.
        reference_accuracy={
            seed: rounded(r["utility"]["clean_accuracy"]) for seed, r in references.items() if r["status"] != "diverged"
        },
        local_only=parties_alone(references)[0],
        subset=problem["data"]["subset"],
        utility=all(t.utility for t in clean),
    )


def _description(record: Record) -> str:
    """Data set, model, clients and training in one line."""
    problem, training = record["problem"], record["options"]["training"]
    epochs = training["local_epochs"]
    parts = [
        problem["dataset"],
        f"model {problem['model']}",
        f"{problem['clients']} clients ({problem['partition']})",
        _corrupted(problem["corrupted"], problem["assumed_corrupted"]),
        f"FedAvg, {epochs} local epochs" if epochs else "FedSGD",
        f"batch {training['batch_size']}",
        f"{training['rounds']} rounds",
        f"learning rate {training['lr']:g}",
    ]
    return ", ".join(parts)


def _corrupted(number: int, expected: int) -> str:
    """How many clients are corrupted, and how many the rule expects. A rule that expects none may be the plain mean."""
    if not number:
        return f"nobody corrupted, {expected} expected to be" if expected else "nobody corrupted or expected to be"
    text = f"{number} of them corrupted where they poison"
    return text if number == expected else f"{text}, {expected} expected to be"


def _provenance(records: Sequence[Record]) -> dict[str, str]:
    """What produced the records: versions, commit and machine, each value once."""
    values: dict[str, list[str]] = defaultdict(list)
    for r in records:
        for name in ("fedarena", "commit", "python", "machine", "system"):
            value: Any = r["environment"].get(name)
            values[name].append(str(value or ""))
        values["torch"].append(str(r["environment"]["libraries"].get("torch", "")))
    return {name: ", ".join(v for v in dict.fromkeys(some) if v) for name, some in values.items()}
