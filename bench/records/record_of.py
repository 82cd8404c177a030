"""The record of a finished run, without what the attack's judge and other runs add to it."""

from __future__ import annotations

import math
from typing import Literal

from fedarena.contracts.goal_names import GoalName
from fedarena.core import registry
from fedarena.core.threat import Threat
from fedarena.federation.finished_run import FinishedRun
from fedarena.federation.spec import MethodSpec
from fedarena.records.environment import environment
from fedarena.records.identity import identity, origins_of
from fedarena.records.schema import SCHEMA, Record, Status, Utility
from fedarena.records.trial_key import key_of, trial_key


def record_of(
    finished: FinishedRun,
    threat: Threat | None,
    reading: str,
    status: Status,
    reason: str,
    metrics: dict[str, float] | None = None,
) -> Record:
    """One record; `utility.fedavg_accuracy` and what follows from it are filled in when FedAvg's run is known."""
    spec, run, problem = finished.spec, finished.run, finished.problem
    poisons = threat is not None and threat.knows is not None
    curve = [[p.rounds, p.accuracy, p.loss if math.isfinite(p.loss) else None] for p in run.curve]
    who = identity(spec, threat, problem.provenance)
    utility: Utility = {"measure": problem.task.criterion.measure, "chance": problem.chance}
    if not poisons:
        utility |= {"clean_accuracy": run.accuracy, "clean_curve": curve}
    record: Record = {
        "schema": SCHEMA,
        "key": "",
        "trial": {"key": "", "records": 1},
        "problem": who["problem"],
        "defense": who["defense"],
        "attack": who["attack"],
        "goal": goal_of(spec.attack),
        "party": who["party"],
        "form": who["form"],
        "attacker_knowledge": who["attacker_knowledge"],
        "reading": reading,
        "seed": spec.seed,
        "status": status,
        "reason": reason,
        "metrics": metrics or {},
        "series": {},
        "scores": {},
        "utility": utility,
        "attacked": {"curve": curve} if poisons else {},
        "tuned": {},
        "warnings": finished.warnings(),
        "guarantees": finished.defense.guarantees(),
        "cost": {
            "bytes_up": run.bytes_up,
            "bytes_down": run.bytes_down,
            "seconds": run.seconds,
            "attack_seconds": 0.0,
            "peak_bytes": run.peak_bytes,
        },
        "options": who["options"],
        "versions": who["versions"],
        "origins": origins_of(spec),
        "environment": environment(),
    }
    record["key"] = key_of(record)
    record["trial"]["key"] = trial_key(who)
    return record


def goal_of(attack: MethodSpec | None) -> Literal["", GoalName]:
    """What an inference attack is after; empty for others."""
    if attack is None:
        return ""
    goal: Literal["", GoalName] = getattr(registry.find("attack", attack.name).load(), "goal", "")
    return goal
