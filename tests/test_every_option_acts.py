"""The law that every option acts: of the schedule, and of a protocol and an attack that have many."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from helpers.attacked import attacked

from fedarena.core import registry
from fedarena.core.threat import Threat
from fedarena.federation.spec import GroupSpec, MethodSpec
from fedarena.problem.schedule import Schedule
from fedarena.runs.engine import run_groups

pytestmark = pytest.mark.usefixtures("briefly_alone")


def outcome(
    defense: dict[str, str] | None = None, attack: dict[str, str] | None = None, schedule: dict[str, Any] | None = None
) -> Any:
    """What a short attacked run measures: everything but its configuration."""
    quick = {"iterations": "10", "restarts": "2", "victims": "2", "window": "6"}
    cards = registry.find("defense", "dbcl"), registry.find("attack", "dlg")
    methods = (
        MethodSpec("dbcl", cards[0].parse(defense or {})),
        MethodSpec("dlg", cards[1].parse(quick | (attack or {}))),
    )
    narrow = registry.find("model", "mlp").parse({"widths": "16"})
    problem, threats = attacked("mlp", narrow, **(schedule or {})), (Threat("server", "adaptive"),)
    groups = [
        GroupSpec(problem, defense=m, attack=methods[1], threats=threats, seed=0)
        for m in (methods[0], MethodSpec("fedavg"))
    ]
    key = tuple(groups)
    if key not in OUTCOMES:
        OUTCOMES[key] = [
            (r["status"], r["reason"], r["metrics"], r["utility"], r["cost"]["bytes_up"], r["cost"]["bytes_down"])
            for r in run_groups(groups, 1)[0].records
        ]
    return OUTCOMES[key]


OUTCOMES: dict[tuple[GroupSpec, ...], Any] = {}
"""What was measured already: settings that one option changes are what another one shares."""


OTHER: dict[str, dict[str, tuple[dict[str, str], dict[str, str]]]] = {
    # option: (settings that change it, settings that both sides share)
    "defense": {
        "ratio": ({"ratio": "0.25"}, {}),
        "vary": ({"vary": "0.3"}, {}),
        "hash": ({"hash": "countsketch"}, {}),
    },
    "attack": {
        "optimizer": ({"optimizer": "adam"}, {}),
        "iterations": ({"iterations": "5"}, {}),
        "lr": ({"lr": "0.01"}, {"optimizer": "adam"}),
        "restarts": ({"restarts": "3"}, {}),
        "labels": ({"labels": "inferred"}, {}),
        "tv": ({"tv": "0.1"}, {}),
        "prior": ({"prior": "none"}, {}),
        "unlikely": ({"unlikely": "0.1"}, {}),
        "decades": ({"decades": "1"}, {"tv": "0.1"}),
        "outside": ({"outside": "5"}, {}),
        "init": ({"init": "uniform"}, {}),
        "tolerance": ({"tolerance": "0.5"}, {}),
        "victims": ({"victims": "3"}, {}),
        "start": ({"start": "2"}, {}),
        "window": ({"window": "4"}, {}),
        "max_batch": ({"max_batch": "1"}, {}),
    },
}
TWO_STEPS = {"batch_size": 16, "local_samples": 32}
SCHEDULES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "rounds": ({"rounds": 20}, {}),
    "loss": ({"loss": "mse"}, {}),
    "batch_size": ({"batch_size": 2}, {}),
    "local_epochs": ({"local_epochs": 2}, {"local_epochs": 1, **TWO_STEPS}),
    "local_samples": ({"local_samples": 4}, {"local_epochs": 1, "batch_size": 4, "local_samples": 8}),
    "participation": ({"participation": 0.5}, {}),
    "lr": ({"lr": 1.0}, {}),
    "client_optimizer": ({"client_optimizer": "adam"}, {"local_epochs": 1, **TWO_STEPS}),
    "momentum": ({"momentum": 0.5}, {"local_epochs": 1, **TWO_STEPS, "client_optimizer": "momentum"}),
    "momentum_form": ({"momentum_form": "ema"}, {"local_epochs": 1, **TWO_STEPS, "client_optimizer": "momentum"}),
    "server_optimizer": ({"server_optimizer": "adam"}, {}),
    "server_lr": ({"server_lr": 3.0}, {}),
    "adam_beta2": ({"adam_beta2": 0.5}, {"server_optimizer": "adam"}),
    "weight_decay": ({"weight_decay": 0.5}, {}),
    "lr_schedule": ({"lr_schedule": "cosine"}, {}),
    "lr_steps": ({"lr_steps": (0.5,)}, {"lr_schedule": "steps"}),
    "lr_gamma": ({"lr_gamma": 0.5}, {"lr_schedule": "steps"}),
    "warmup": ({"warmup": 0.5}, {}),
    "augment": ({"augment": ("flip",)}, {}),
    "eval_every": ({"eval_every": 2}, {}),
}


def test_every_option_is_tried_below() -> None:
    for kind, name in (("defense", "dbcl"), ("attack", "dlg")):
        card = registry.find(kind, name)  # type: ignore[arg-type]
        assert {f.name for f in dataclasses.fields(card.options)} == set(OTHER[kind]), name
    # A client's memory is a limit: tests/federation/test_rounds.py refuses what exceeds it and slices what can be cut.
    # Batch statistics need another model and protocol: tests/contracts/test_sent_statistics.py.
    assert {f.name for f in dataclasses.fields(Schedule)} == {*SCHEDULES, "client_memory", "batch_statistics"}


@pytest.mark.parametrize(("group", "name"), [(g, n) for g, names in OTHER.items() for n in names])
def test_every_option_of_a_method_acts(group: str, name: str) -> None:
    changed, shared = OTHER[group][name]
    more: dict[str, Any] = {"schedule": {"batch_size": 2}} if name == "max_batch" else {}
    assert outcome(**{group: shared | changed}, **more) != outcome(**{group: shared}, **more)


@pytest.mark.parametrize("name", SCHEDULES)
def test_every_option_of_the_schedule_acts(name: str) -> None:
    changed, shared = SCHEDULES[name]
    assert outcome(schedule=shared | changed) != outcome(schedule=shared)
