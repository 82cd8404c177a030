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
from fedarena.runs import trial

Settings = Mapping[str, Mapping[str, str]]
"""Options as text by group (attack, training, model, partition), as after `--set`. The group `problem` names the
model or the partition."""

TRAINING = 0.3
"""The share of a pairing's time that progress counts for the training."""


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
