"""The law that every registered method acts, third-party ones included, and that every option does.

Attacks lower the undefended score; defenses change what crosses the wire, and train a model nearly as good
as FedAvg's where their paper says so.
"""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any

import pytest
import torch

from fedarena import federation, registry
from fedarena.engine import run_groups
from fedarena.problem import Problem, ProblemSpec, build
from fedarena.rng import Rng
from fedarena.schedule import Schedule
from fedarena.spec import GroupSpec, MethodSpec
from fedarena.threat import Threat

NAMES = {kind: registry.registries()[kind].names() for kind in ("defense", "attack", "model", "partition")}


@cache
def trained(defense: str) -> federation.Run:
    """A dense ReLU network, which is what the defenses' papers train on."""
    problem = prepared(rounds=400, batch_size=32, lr=0.2)
    card = registry.find("defense", defense)
    run = federation.run(card.load()(card.parse({}), problem.task), problem, Rng(0).child("federation"), watch=(0,))
    assert run.diverged_at is None
    return run


def prepared(**schedule: Any) -> Problem:
    model = registry.find("model", "mlp").parse({"widths": "100"})
    return build(ProblemSpec("digits", "mlp", "iid", 2, model, schedule=Schedule(**schedule)), 0)


@pytest.mark.parametrize("name", [n for n in NAMES["defense"] if n != "fedavg"])
def test_a_defense_changes_the_wire_and_keeps_the_accuracy(name: str) -> None:
    plain, defended = trained("fedavg"), trained(name)
    wires = [(run.rounds[0].down, run.rounds[0].ups) for run in (plain, defended)]
    assert any(
        set(a) != set(b) or any(a[n].shape != b[n].shape or not torch.equal(a[n], b[n]) for n in a)
        for a, b in zip(*wires, strict=True)
    )
    assert plain.accuracy > 0.9
    assert defended.accuracy > plain.accuracy - 0.1


@pytest.mark.parametrize("name", NAMES["attack"])
def test_an_attack_lowers_the_undefended_score(name: str) -> None:
    card = registry.find("attack", name)
    threats = (Threat("server", "adaptive"), Threat("client", "adaptive"))
    spec = GroupSpec(attacked(rounds=40), MethodSpec("fedavg"), MethodSpec(name, card.parse({})), threats, 0)
    for record in run_groups([spec], 1)[0].records:
        assert record["status"] == "ok", record["reason"]
        assert record["scores"]["privacy"] < 0.5
        assert record["metrics"]["ssim"] > record["metrics"]["prior_mean_ssim"]


def attacked(model: str = "lenet-dlg", model_options: Any = None, **schedule: Any) -> ProblemSpec:
    options = model_options or registry.find("model", model).parse({})
    return ProblemSpec("digits", model, "iid", 2, options, schedule=Schedule(**{"rounds": 8, **schedule}))


def outcome(
    defense: dict[str, str] | None = None, attack: dict[str, str] | None = None, schedule: dict[str, Any] | None = None
) -> Any:
    """What a short attacked run measures: everything but its configuration."""
    quick = {"iterations": "25", "restarts": "2", "victims": "2", "window": "6"}
    cards = registry.find("defense", "dbcl"), registry.find("attack", "dlg")
    methods = (
        MethodSpec("dbcl", cards[0].parse(defense or {})),
        MethodSpec("dlg", cards[1].parse(quick | (attack or {}))),
    )
    problem, threats = attacked(**(schedule or {})), (Threat("server", "adaptive"),)
    groups = [GroupSpec(problem, m, methods[1], threats, 0) for m in (methods[0], MethodSpec("fedavg"))]
    return [
        (r["status"], r["reason"], r["metrics"], r["utility"], r["cost"]["bytes_up"], r["cost"]["bytes_down"])
        for r in run_groups(groups, 1)[0].records
    ]


@cache
def usual() -> Any:
    return outcome()


OTHER: dict[str, dict[str, tuple[dict[str, str], dict[str, str]]]] = {
    # option: (settings that change it, settings that both sides share)
    "defense": {
        "ratio": ({"ratio": "0.25"}, {}),
        "vary": ({"vary": "0.3"}, {}),
        "hash": ({"hash": "balanced"}, {}),
    },
    "attack": {
        "optimizer": ({"optimizer": "adam"}, {}),
        "iterations": ({"iterations": "12"}, {}),
        "lr": ({"lr": "0.01"}, {"optimizer": "adam"}),
        "restarts": ({"restarts": "3"}, {}),
        "labels": ({"labels": "inferred"}, {}),
        "tv": ({"tv": "0.1"}, {}),
        "init": ({"init": "uniform"}, {}),
        "tolerance": ({"tolerance": "0.5"}, {}),
        "victims": ({"victims": "3"}, {}),
        "start": ({"start": "2"}, {}),
        "window": ({"window": "4"}, {}),
        "max_batch": ({"max_batch": "1"}, {}),
    },
}
SCHEDULES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "rounds": ({"rounds": 20}, {}),
    "batch_size": ({"batch_size": 2}, {}),
    "local_epochs": ({"local_epochs": 2}, {"local_epochs": 1, "batch_size": 100}),
    "participation": ({"participation": 0.5}, {}),
    "lr": ({"lr": 1.0}, {}),
    "client_optimizer": ({"client_optimizer": "adam"}, {"local_epochs": 1, "batch_size": 100}),
    "momentum": ({"momentum": 0.5}, {"local_epochs": 1, "batch_size": 100, "client_optimizer": "momentum"}),
    "server_optimizer": ({"server_optimizer": "adam"}, {}),
    "server_lr": ({"server_lr": 3.0}, {}),
    "eval_every": ({"eval_every": 2}, {}),
}


def test_every_option_is_tried_below() -> None:
    for kind, name in (("defense", "dbcl"), ("attack", "dlg")):
        card = registry.find(kind, name)  # type: ignore[arg-type]
        assert {f.name for f in dataclasses.fields(card.options)} == set(OTHER[kind]), name
    assert {f.name for f in dataclasses.fields(Schedule)} == set(SCHEDULES)


@pytest.mark.parametrize(("group", "name"), [(g, n) for g, names in OTHER.items() for n in names])
def test_every_option_of_a_method_acts(group: str, name: str) -> None:
    changed, shared = OTHER[group][name]
    more: dict[str, Any] = {"schedule": {"batch_size": 2}} if name == "max_batch" else {}
    before = usual() if not shared and not more else outcome(**{group: shared}, **more)
    assert outcome(**{group: shared | changed}, **more) != before


@pytest.mark.parametrize("name", SCHEDULES)
def test_every_option_of_the_schedule_acts(name: str) -> None:
    changed, shared = SCHEDULES[name]
    assert outcome(schedule=shared | changed) != (outcome(schedule=shared) if shared else usual())
