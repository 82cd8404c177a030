"""Checks whether what a record says fits together, above all whether its scores follow from its own metrics."""

from __future__ import annotations

from collections.abc import Mapping

from fedarena import goals
from fedarena.records.schema import Record

CLOSE = 1e-6
"""Scores that differ by less are equal."""


def doubt(record: Record) -> str:
    """Why a record does not count: it is of an attack by nobody, or its scores do not follow from its metrics.

    They disagree if the scores or the metrics were edited, or one of them was removed.
    """
    stored, status = record["scores"], record["status"]
    if record["attack"] != "none" and not (record["party"] and record["form"]):
        return "party or form is empty, though it is of an attack"
    if status not in ("ok", "diverged") or record["attack"] == "none":
        return f"it has scores ({_list(stored)}), where there was nothing to score" if stored else ""
    if not (record["attacker_knowledge"] or record["goal"]):
        return "goal is empty, though it is of an inference attack"
    # After divergence there may have been nothing left to attack.
    if status == "diverged" and not stored:
        return ""
    try:
        computed = goals.recorded(record["goal"]).scores(record["metrics"], record["utility"])
    except KeyError as missing:
        return f"metrics has no {missing.args[0]}, from which its score follows"
    if set(stored) == set(computed) and all(abs(stored[name] - computed[name]) < CLOSE for name in computed):
        return ""
    return f"its scores ({_list(stored)}) do not follow from what was measured, which gives {_list(computed)}"


def _list(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.6g}" for name, value in values.items()) or "none"
