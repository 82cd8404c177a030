"""What tables of inference attacks have in common: a pairing on its usual problem, with digits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fedarena.core import registry
from fedarena.core.threat import Threat
from fedarena.federation import compose
from fedarena.federation.spec import GroupSpec, MethodSpec
from fedarena.problem.spec import usual_problem
from fedarena.records.schema import Record
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.progress import Progress, between, step
from fedarena.reproduce.table import Row
from fedarena.runs import trial

Settings = Mapping[str, Mapping[str, str]]
"""Options as text by group (attack, training, model, partition), as after `--set`. The group `problem` names the
model or the partition."""

TRAINING = 0.3
"""The share of a pairing's time that progress counts for the training."""
IDENTIFIED = ("identified", "low", "high", "recovered", "accuracy")
"""Columns of a reconstruction: the share of the victims identified, its 95 % interval, the share recovered, and the
accuracy of the model."""


def most_identified(records: Sequence[Record], refusal: str = "") -> Row:
    """The columns `IDENTIFIED` of the reading that identifies most, and a note with the reason where there is none.

    Args:
        refusal: why there are no records.
    """
    ok = [r for r in records if r["status"] == "ok"]
    if not ok:
        reasons = [f"{r['status']}: {r['reason']}" for r in records] or [f"refused: {refusal}"]
        return {**dict.fromkeys(IDENTIFIED), "note": reasons[0]}
    best = max(ok, key=lambda r: r["metrics"]["identified"])
    m = best["metrics"]
    values = (m["identified"], m["identified_low"], m["identified_high"], m["recovered"])
    return {**dict(zip(IDENTIFIED, (*values, best["utility"]["clean_accuracy"]), strict=True)), "note": ""}


def pairing(
    attack: str,
    defense: MethodSpec,
    attackers: Sequence[Threat],
    settings: Settings,
    machine: Machine,
    seed: int,
    progress: Progress,
) -> list[Record]:
    """The records of a pairing as `bench run` writes them, without FedAvg beside them.

    Raises:
        UserError: the attack or the defense refuses the problem.
    """
    cards = registry.find("attack", attack), registry.find("defense", defense.name)
    spec = GroupSpec(
        problem=usual_problem({"dataset": "digits", **settings.get("problem", {})}, settings, cards),
        defense=defense,
        attack=compose.parse_attack(attack, settings.get("attack", {})),
        threats=tuple(attackers),
        seed=seed,
        device=machine.device,
        data_dir=machine.data_dir,
    )
    trials = trial.prepare(spec, between(progress, 0.0, TRAINING))
    attacking = between(progress, TRAINING, 1.0)
    return [trial.attack(one, step(attacking, i, len(trials)))[0] for i, one in enumerate(trials)]
