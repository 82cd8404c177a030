"""Whether a record's scores are those that its own metrics give."""

from __future__ import annotations

from collections.abc import Mapping

from fedarena.federation import integrity
from fedarena.goals import scores
from fedarena.records.record import Record

CLOSE = 1e-6
"""Scores that differ by less are equal."""


def doubt(record: Record) -> str:
    """Why a record's scores are not those that its own metrics give; empty where they are.

    They are not where somebody edited the scores or the metrics, or removed one of them.
    """
    stored, status = record["scores"], record["status"]
    if status not in ("ok", "diverged") or record["attack"] == "none":
        return f"it has scores ({_list(stored)}), where there was nothing to score" if stored else ""
    if not (record["knows"] or record["goal"]):
        return "goal is empty, though it is of an inference attack"
    # After divergence there may have been nothing left to attack.
    if status == "diverged" and not stored:
        return ""
    try:
        computed = _scores_of(record)
    except KeyError as missing:
        return f"metrics has no {missing.args[0]}, from which its score follows"
    if set(stored) == set(computed) and all(abs(stored[name] - computed[name]) < CLOSE for name in computed):
        return ""
    return f"its scores ({_list(stored)}) do not follow from what was measured, which gives {_list(computed)}"


def _scores_of(record: Record) -> dict[str, float]:
    """The scores that a record's metrics give. Raises KeyError for a metric that is missing."""
    metrics, utility = record["metrics"], record["utility"]
    if record["knows"]:
        base = metrics.get("clean_success_rate", 0.0)
        clean, chance, plain = (utility.get(name) for name in ("clean_accuracy", "chance", "fedavg_accuracy"))
        return integrity.score(metrics, clean, chance, base, plain)
    return scores.privacy(record["goal"], metrics)


def _list(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.6g}" for name, value in values.items()) or "none"
