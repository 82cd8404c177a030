"""Which groups of trials can read one training run, and the runs that they are measured against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fedarena import goals
from fedarena.contracts.baseline import BASELINE
from fedarena.federation import compose
from fedarena.federation.spec import GroupSpec, MethodSpec, Training, training_under
from fedarena.records.schema import Record


def training_of(spec: GroupSpec) -> Training:
    """The run that a group reads, without a probe: the same run serves all."""
    return training_under(spec) if spec.attack is None else goals.of_attack(spec.attack).training(spec)


def given_by(spec: GroupSpec) -> list[Training]:
    """For which runs a group's record can stand as the reference; none for poisoned ones."""
    run, probe = training_of(spec), compose.trigger_of(spec.probe)
    if run.poisoned:
        return []
    return [run] if probe is None else [run, replace(run, probe=probe)]


def references(spec: GroupSpec) -> tuple[Training, Training]:
    """What a group is measured against: its own defense's run that nobody poisons, and FedAvg's."""
    if spec.attack is not None:
        return goals.of_attack(spec.attack).references(spec)
    run = training_under(spec)
    return run, replace(run, defense=MethodSpec(BASELINE))


def shared(groups: Sequence[GroupSpec]) -> list[list[int]]:
    """Indices of the groups that read one run each, in the order in which runs first come."""
    readers: dict[object, list[int]] = {}
    for i, group in enumerate(groups):
        run = training_of(group)
        # A poisoned run has one reader; the same one asked for twice is run twice.
        readers.setdefault(i if run.poisoned else run, []).append(i)
    return list(readers.values())


def add_reference(record: Record, own: Record, plain: Record) -> None:
    """Set a run beside those that it is measured against (`fedarena.goals.goal.Goal.references`).

    Every run is set beside FedAvg's: `utility.fedavg_accuracy`, `utility.relative` = clean/FedAvg, cut to [0, 1], and
    `cost.relative_seconds`. What a goal takes of the clean run is its own (`fedarena.goals.goal.Goal.add_reference`).

    Args:
        own: the same defense's run that nobody poisoned. plain: FedAvg's.
    """
    utility, cost = record["utility"], record["cost"]
    accuracy, seconds = plain["utility"]["clean_accuracy"], plain["cost"]["seconds"]
    utility["fedavg_accuracy"] = accuracy
    if (goal := goals.of_record(record)) is not None:
        goal.add_reference(record, own)
    utility["relative"] = min(1.0, max(0.0, utility["clean_accuracy"] / accuracy)) if accuracy > 0 else 0.0
    cost["relative_seconds"] = cost["seconds"] / seconds if seconds else None
