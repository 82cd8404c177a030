"""From metrics to scores in [0, 1], higher is better for the defender."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fedarena.records import Record


def privacy(status: str, metrics: Mapping[str, float]) -> dict[str, float]:
    """leak and privacy = 1 − leak of one trial; empty when nothing was attacked (n/a, diverged, failed).

    For reconstructions leak is `recovered`, the share of images that came back with SSIM ≥ 0.9.
    """
    if status != "ok":
        return {}
    leak = min(1.0, max(0.0, metrics["recovered"]))
    return {"leak": leak, "privacy": 1.0 - leak}


def add_reference(records: Iterable[Record], fedavg: Mapping[int, Mapping[str, float]]) -> None:
    """Set the defended runs beside FedAvg on the same problem and seed.

    Fills `utility.fedavg_accuracy`, `utility.relative` = min(1, clean/FedAvg) and `cost.relative_seconds`.

    Args:
        fedavg: seed → {"accuracy", "seconds"} of the plain run.
    """
    for record in records:
        plain, utility, cost = fedavg[record["seed"]], record["utility"], record["cost"]
        utility["fedavg_accuracy"] = plain["accuracy"]
        utility["relative"] = min(1.0, utility["clean_accuracy"] / plain["accuracy"]) if plain["accuracy"] else 0.0
        cost["relative_seconds"] = cost["seconds"] / plain["seconds"] if plain["seconds"] else None
