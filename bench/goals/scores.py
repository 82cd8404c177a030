"""A run set beside those that it is measured against."""

from __future__ import annotations

from fedarena import goals
from fedarena.records.schema import Record


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
