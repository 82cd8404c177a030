"""The record of a finished run and where it was made, without what the judge and other runs add to it."""

from __future__ import annotations

import math
import os
import platform
import subprocess
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from fedarena import __version__
from fedarena.contracts.goal_names import GoalName
from fedarena.core import registry
from fedarena.core.threat import Threat
from fedarena.federation.finished_run import FinishedRun
from fedarena.federation.spec import MethodSpec
from fedarena.records.identity import identity_of, origins_of
from fedarena.records.schema import SCHEMA, Cost, Environment, Record, Status, Utility
from fedarena.records.trial_key import key_of, trial_key


def record_of(
    finished: FinishedRun,
    threat: Threat | None,
    reading: str,
    status: Status,
    reason: str,
    metrics: dict[str, float] | None = None,
) -> Record:
    """The record of a run under a threat, without the fields that follow from comparisons with other runs.

    Args:
        threat: None for a run without an attack.
        reading: the way in which the party looked at what it saw.
        metrics: what is known before the attack is judged.
    """
    identity = identity_of(finished.spec, threat, finished.problem.provenance)
    poisoned = identity["attacker_knowledge"] != ""
    curve = [[p.rounds, p.accuracy, p.loss if math.isfinite(p.loss) else None] for p in finished.run.curve]
    record: Record = {
        "schema": SCHEMA,
        "key": "",
        "trial": {"key": trial_key(identity), "records": 1},
        "problem": identity["problem"],
        "defense": identity["defense"],
        "attack": identity["attack"],
        "goal": goal_of(finished.spec.attack),
        "party": identity["party"],
        "form": identity["form"],
        "attacker_knowledge": identity["attacker_knowledge"],
        "reading": reading,
        "seed": identity["seed"],
        "status": status,
        "reason": reason,
        "metrics": metrics or {},
        "series": {},
        "scores": {},
        "utility": _utility(finished, None if poisoned else curve),
        "attacked": {"curve": curve} if poisoned else {},
        "tuned": {},
        "warnings": finished.warnings(),
        "guarantees": finished.defense.guarantees(),
        "cost": _cost(finished),
        "options": identity["options"],
        "versions": identity["versions"],
        "origins": origins_of(finished.spec),
        "environment": environment(),
    }
    record["key"] = key_of(record)
    return record


def _utility(finished: FinishedRun, clean_curve: list[list[Any]] | None) -> Utility:
    """Args: clean_curve: accuracy by round; None for a poisoned run, whose clean run is another one."""
    utility: Utility = {"measure": finished.problem.task.criterion.measure, "chance": finished.problem.chance}
    if clean_curve is not None:
        utility |= {"clean_accuracy": finished.run.accuracy, "clean_curve": clean_curve}
    return utility


def _cost(finished: FinishedRun) -> Cost:
    run = finished.run
    return {
        "bytes_up": run.bytes_up,
        "bytes_down": run.bytes_down,
        "seconds": run.seconds,
        "attack_seconds": 0.0,
        "peak_bytes": run.peak_bytes,
    }


def goal_of(attack: MethodSpec | None) -> Literal["", GoalName]:
    """What an inference attack is after; empty for others."""
    if attack is None:
        return ""
    goal: Literal["", GoalName] = getattr(registry.find("attack", attack.name).load(), "goal", "")
    return goal


@cache
def environment() -> Environment:
    """Where a record was made."""
    libraries = ("torch", "numpy", "scipy", "scikit-learn", "torchmetrics", "dp-accounting")
    return {
        "fedarena": __version__,
        "commit": _commit(),
        "python": platform.python_version(),
        "libraries": {name: version(name) for name in libraries},
        "machine": platform.machine(),
        "system": platform.system(),
        "cpus": os.cpu_count(),
    }


def _commit() -> str | None:
    """The commit of a source checkout, or None for an installed package."""
    root = Path(__file__).resolve().parents[2]
    if not (root / "pyproject.toml").exists():
        return None
    description = subprocess.run(
        ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12"], capture_output=True, text=True
    )
    return description.stdout.strip() or None
