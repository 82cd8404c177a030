"""From metrics to scores in [0, 1], higher is better for the defender."""

from __future__ import annotations

from collections.abc import Mapping

from fedarena import goals
from fedarena.federation import integrity
from fedarena.records.schema import Record


def privacy(goal: str, metrics: Mapping[str, float]) -> dict[str, float]:
    """leak and privacy = 1 − leak of one trial that was attacked; leak is the advantage over guessing, as the goal
    says (`fedarena.goals.goal.Goal.leak`)."""
    leak = min(1.0, max(0.0, goals.find(goal).leak(metrics)))
    return {"leak": leak, "privacy": 1.0 - leak}


def add_reference(record: Record, own: Record, plain: Record) -> None:
    """Set a run beside those that it is measured against (`fedarena.runs.shared_training.references`).

    A defended run beside FedAvg's: `utility.fedavg_accuracy`, `utility.relative` = clean/FedAvg, cut to [0, 1], and
    `cost.relative_seconds`. A poisoned run beside the same federation with nobody corrupted: accuracy drops and
    the score, and its accuracy as `utility.clean_accuracy`.

    Args:
        own: the same defense's run that nobody poisoned. plain: FedAvg's.
    """
    utility, cost = record["utility"], record["cost"]
    accuracy, seconds = plain["utility"]["clean_accuracy"], plain["cost"]["seconds"]
    utility["fedavg_accuracy"] = accuracy
    if record["knows"]:
        utility |= {name: own["utility"][name] for name in ("clean_accuracy", "clean_curve")}
        if record["status"] == "ok":
            _judge_poisoning(record, own)
    utility["relative"] = min(1.0, max(0.0, utility["clean_accuracy"] / accuracy)) if accuracy > 0 else 0.0
    cost["relative_seconds"] = cost["seconds"] / seconds if seconds else None


def _judge_poisoning(record: Record, clean: Record) -> None:
    metrics, utility = record["metrics"], record["utility"]
    metrics |= integrity.damage(
        record["attacked"]["curve"], utility["clean_curve"], record["attacked"].get("begins", 0)
    )
    base = clean["metrics"].get("attack_success_rate", 0.0)
    if "attack_success_rate" in metrics:
        metrics["clean_success_rate"] = base
    record["scores"] = integrity.score(
        metrics, utility["clean_accuracy"], utility["chance"], base, utility["fedavg_accuracy"]
    )
