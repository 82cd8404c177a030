"""The identity of a trial, and the record of a finished run before the judge and other runs add to it."""

from __future__ import annotations

import math
import os
import platform
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import torch
from threadpoolctl import threadpool_info

from fedarena import __version__
from fedarena.contracts.goal_names import JUDGE_VERSIONS, GoalName
from fedarena.core import registry
from fedarena.core.card import Kind
from fedarena.core.options import as_recorded
from fedarena.core.source_commit import source_commit
from fedarena.core.threat import Threat
from fedarena.datasets.dataset import Provenance
from fedarena.federation import compose
from fedarena.federation.by_client import mean_and_lowest_decile
from fedarena.federation.finished_run import FinishedRun
from fedarena.federation.spec import GroupSpec, MethodSpec
from fedarena.problem.client_steps import LOCAL_TRAINING_VERSION
from fedarena.records.schema import SCHEMA, Cost, DataSource, Environment, Identity, Record, Status, Utility
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
        reading: the name of the reading, the way in which the party looked at what it saw.
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
    _add_optional(record, identity, finished)
    record["key"] = key_of(record)
    return record


def _add_optional(record: Record, identity: Identity, finished: FinishedRun) -> None:
    """Add the fields of the identity that it may lack, and the accuracy by client after the last round, where it says
    something."""
    if "secret" in identity:
        record["secret"] = identity["secret"]
    if "other_rounds" in identity:
        record["other_rounds"] = identity["other_rounds"]
    last = finished.run.curve[-1]
    if finished.spec.problem.partition == "iid" or not last.rounds:
        return
    found = mean_and_lowest_decile(finished.problem, last.by_class)
    if found is not None:
        record["by_client"] = {"mean": found[0], "lowest_decile": found[1]}


def _utility(finished: FinishedRun, clean_curve: list[list[Any]] | None) -> Utility:
    """The quality of the model. `clean_curve` is None for a poisoned run, whose clean run is a different run."""
    utility: Utility = {
        "measure": finished.problem.task.criterion.measure,
        "chance": finished.problem.chance,
        "references": {},
    }
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
    """The goal of an inference attack; empty for others."""
    if attack is None:
        return ""
    goal: Literal["", GoalName] = getattr(compose.attack_classes(attack)[0], "goal", "")
    return goal


@cache
def environment() -> Environment:
    """The environment in which a record was measured."""
    libraries = ("torch", "numpy", "scipy", "scikit-learn", "dp-accounting")
    return {
        "fedarena": __version__,
        "commit": source_commit(),
        "python": platform.python_version(),
        "libraries": {name: version(name) for name in libraries},
        "machine": platform.machine(),
        "system": platform.system(),
        "cpus": os.cpu_count(),
        "processor": _processor(),
        "kernels": _kernels(),
    }


def _processor() -> str:
    """The processor's model, as Linux names it; elsewhere Python's word for it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor()


def _kernels() -> str:
    """What computes: PyTorch's vector instructions, and the BLAS libraries that this process has loaded."""
    parts = [torch.backends.cpu.get_cpu_capability()]
    if torch.backends.mkl.is_available():
        parts.append("mkl in torch")
    for library in threadpool_info():
        if library["user_api"] == "blas":
            words = (library["internal_api"], library["version"], library.get("architecture"))
            parts.append(" ".join(word for word in words if word))
    return "; ".join(dict.fromkeys(parts))


def identity_of(spec: GroupSpec, threat: Threat | None, data: Provenance) -> Identity:
    """The identity of the trial of a threat: everything that determines its result, known before it is run.

    The key of a trial is a hash of its identity (`fedarena.records.trial_key`). With its key a trial is found again, so
    that it is not run twice.

    Args:
        threat: None for a run without an attack.
        data: the source of the problem's data set, with its checksum.
    """
    problem, attack = spec.problem, spec.attack
    judge = JUDGE_VERSIONS.get(goal_of(attack), 1)
    identity: Identity = {
        "problem": {
            "dataset": problem.dataset,
            "data": _data_source(data),
            "model": problem.model,
            "partition": problem.partition,
            "clients": problem.clients,
            "corrupted": problem.corrupted,
            "corrupted_data": problem.corrupted_data,
            "assumed_corrupted": problem.assumed_corrupted_or_default,
            "device": spec.device,
        },
        "defense": spec.defense.label,
        "attack": attack.label if attack else "none",
        "party": threat.party if threat else "",
        "form": threat.form if threat else "",
        "attacker_knowledge": (threat.knows or "") if threat else "",
        "seed": spec.seed,
        "options": {
            **options_of("defense", spec.defense),
            **options_of("attack", attack),
            **options_of("probe", compose.trigger_of(spec.probe)),
            **problem.options(),
        },
        "versions": {
            **versions_of("defense", spec.defense),
            **versions_of("attack", attack),
            **({"judge": judge} if judge > 1 else {}),
            **({"local_training": LOCAL_TRAINING_VERSION} if problem.schedule.local_epochs else {}),
            **{kind: card.version for kind, card in problem.cards().items()},
        },
    }
    if spec.secret:
        identity["secret"] = spec.secret
    if spec.other_rounds:
        identity["other_rounds"] = True
    return identity


def _data_source(data: Provenance) -> DataSource:
    return {
        "source": data.source,
        "file": data.file,
        "sha256": data.sha256,
        "verified": data.verified,
        "subset": data.subset,
    }


def options_of(kind: str, method: MethodSpec | None) -> dict[str, Any]:
    """The options of a method under its kind, and those of its further parts under `kind+name`."""
    if method is None:
        return {}
    further = {f"{kind}+{p.name}": as_recorded(p.options) for p in method.rest}
    return {kind: as_recorded(method.options), **further}


def versions_of(kind: Kind, method: MethodSpec | None) -> dict[str, int]:
    """The version of a method under its kind, and those of its further parts under `kind+name`."""
    if method is None:
        return {}
    part = registry.find_part if kind == "defense" else partial(registry.find, kind)
    further = {f"{kind}+{p.name}": part(p.name).version for p in method.rest}
    return {kind: registry.find(kind, method.name).version, **further}


def origins_of(spec: GroupSpec) -> dict[str, str]:
    """The sources of methods that are not of this package: "distribution 1.2 (authors)" by method."""
    origins = {}
    for kind, claim in (*compose.added("defense", spec.defense), *compose.added("attack", spec.attack)):
        authors = registry.find(kind, claim.name).authors
        origins[claim.name] = claim.origin + (f" ({authors})" if authors else "")
    return origins
