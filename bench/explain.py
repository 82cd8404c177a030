"""Who sees what: read off two rounds that are really played, so that it cannot drift from the code."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from fedarena import federation
from fedarena.attack import Inference
from fedarena.cards import Card
from fedarena.defense import Defense
from fedarena.problem import ProblemSpec, build
from fedarena.rng import Rng
from fedarena.spec import threats
from fedarena.tensors import Tensors, nbytes, row
from fedarena.threat import FORM_MEANING, FORMS, PARTIES, SIGHT, NotApplicable, Sight
from fedarena.transcript import cut

ROUNDS = 2


def explain(
    spec: ProblemSpec, defense_card: Card, options: Any, attack_card: Card, attack_options: Any, data_dir: Path | None
) -> dict[str, Any]:
    """Wires with shapes and bytes, and for every party and form what it sees and what the attack is given."""
    spec = replace(spec, schedule=replace(spec.schedule, rounds=ROUNDS, eval_every=0))
    problem = build(spec, 0, data_dir)
    defense: Defense = defense_card.load()(options, problem.task)
    attack: Inference = attack_card.load()(attack_options)
    run = federation.run(defense, problem, Rng(0).child("federation"), watch=range(ROUNDS))
    first = run.rounds[0]
    up = row(first.ups, 0)
    parties = []
    for threat in threats(PARTIES, FORMS):
        readings = defense.readings(threat, cut(run.rounds, threat), (0,))
        if isinstance(readings, NotApplicable):
            given = f"n/a: {readings.reason}"
        else:
            given = "\n".join(f"{r.name}: {_target(r.observations[0].target)}" for r in readings)
        given += f"\n({FORM_MEANING[threat.form]})"
        parties.append({"party": threat.party, "form": threat.form, "sees": _sees(SIGHT[threat.party]), "given": given})
    if attack.knows_labels:
        parties = [{**p, "given": p["given"] + "\nand the victims' labels"} for p in parties]
    return {
        "defense": defense_card.name,
        "title": defense_card.title,
        "attack": attack_card.name,
        "attack_title": attack_card.title,
        "wires": [*_wire("down", first.down, first.params), *_wire("up", up, first.params)],
        "bytes": {"down": nbytes(first.down), "up": nbytes(up)},
        "parties": parties,
        "facts": [list(fact) for fact in (*defense_card.facts, *attack_card.facts)],
    }


def _wire(name: str, tensors: Tensors, plain: Tensors) -> list[dict[str, Any]]:
    rows = []
    for tensor, t in tensors.items():
        shape = " x ".join(map(str, t.shape))
        same = " x ".join(map(str, plain[tensor].shape)) if tensor in plain else "-"
        bytes_ = t.numel() * t.element_size()
        rows.append({"wire": name, "tensor": tensor, "shape": shape, "bytes": bytes_, "plain": same})
    return rows


def _target(target: Tensors) -> str:
    return f"{len(target)} tensors, {sum(t.numel() for t in target.values()):,} numbers"


def _sees(sight: Sight) -> str:
    parts = {
        "the broadcast": sight.down,
        "every upload": sight.ups,
        "W and the round's secrets": sight.state,
        "its own data and upload, in the rounds it is sampled": sight.own,
    }
    return "; ".join(name for name, seen in parts.items() if seen)
