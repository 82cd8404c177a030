"""From metrics to scores in [0, 1], higher is better for the defender."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fedarena.records import Record


def privacy(metrics: Mapping[str, float]) -> dict[str, float]:
    """leak and privacy = 1 − leak of one trial that was attacked.

    For reconstructions leak is `recovered`, the share of images that came back with SSIM ≥ 0.9.
    """
    leak = min(1.0, max(0.0, metrics["recovered"]))
    return {"leak": leak, "privacy": 1.0 - leak}


def add_reference(records: Sequence[Record]) -> None:
    """Set defended runs beside FedAvg's on the same seed, which must be among the records.

    Fills `utility.fedavg_accuracy`, `utility.relative` = min(1, clean/FedAvg) and `cost.relative_seconds`.
    """
    plain = {r["seed"]: r for r in records if r["defense"] == "fedavg"}
    for record in records:
        reference, utility, cost = plain[record["seed"]], record["utility"], record["cost"]
        accuracy, seconds = reference["utility"]["clean_accuracy"], reference["cost"]["seconds"]
        utility["fedavg_accuracy"] = accuracy
        utility["relative"] = min(1.0, utility["clean_accuracy"] / accuracy) if accuracy else 0.0
        cost["relative_seconds"] = cost["seconds"] / seconds if seconds else None
