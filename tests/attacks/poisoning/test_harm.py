"""Attacks do harm in a federation where their papers say so, and the weaker setting beside them does not."""

from __future__ import annotations

from functools import cache

import pytest

from fedarena.core import registry
from fedarena.core.rng import Rng
from fedarena.core.threat import Knowledge
from fedarena.federation import compose
from fedarena.federation import rounds as federation
from fedarena.federation.adversary import Adversary, knowledge_of
from fedarena.federation.rounds import Run
from fedarena.federation.triggered_inputs import success_rate, triggered_inputs
from fedarena.problem.problem import Problem, build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec


@cache
def digits(corrupted: int) -> Problem:
    model = registry.find("model", "mlp").parse({"widths": "50"})
    schedule = Schedule(rounds=100, batch_size=16, lr=0.2)
    return build(
        ProblemSpec(
            "digits",
            model="mlp",
            partition="iid",
            clients=20,
            model_options=model,
            schedule=schedule,
            corrupted=corrupted,
        ),
        0,
    )


def attacked(defense: str, attack: str, options: dict[str, str], knows: Knowledge, corrupted: int) -> Run:
    """100 rounds; 20 clients."""
    problem = digits(corrupted)
    made = compose.make_defense(compose.parse_defense(defense), problem.task)
    poison = compose.make_poisoning(compose.parse_attack(attack, options), knowledge_of(problem, made, knows))
    assert poison.applies() is None
    adversary = Adversary(poison, frozenset(problem.corrupted), Rng(1))
    return federation.run(made, problem, Rng(0).child("federation"), adversary=adversary)


@cache
def clean(defense: str, corrupted: int) -> float:
    problem = digits(corrupted)
    made = compose.make_defense(compose.parse_defense(defense), problem.task)
    return federation.run(made, problem, Rng(0).child("federation")).accuracy


@pytest.mark.parametrize(
    ("defense", "attack", "options", "knows", "corrupted"),
    [
        ("fedavg", "gaussian", {}, "own", 4),
        ("fedavg", "sign-flip", {}, "own", 4),
        ("fedavg", "ipm", {}, "own", 4),
        ("fedavg", "optimized", {}, "omniscient", 5),
        ("fedavg", "delayed+sign-flip", {}, "own", 4),
        ("krum", "ipm", {"epsilon": "0.5"}, "omniscient", 4),
        ("krum", "optimized", {"against": "krum"}, "omniscient", 4),
        ("krum", "min-sum", {}, "own", 4),
        ("median", "alie", {"z": "1.5"}, "own", 8),
        ("trimmed-mean", "optimized", {"against": "trimmed-mean"}, "omniscient", 4),
        ("trimmed-mean", "min-max", {"perturbation": "std"}, "omniscient", 4),
    ],
)
def test_accuracy_falls(defense: str, attack: str, options: dict[str, str], knows: Knowledge, corrupted: int) -> None:
    run = attacked(defense, attack, options, knows, corrupted)
    assert run.accuracy < clean(defense, corrupted) - 0.1, (run.accuracy, clean(defense, corrupted))


def test_a_rule_that_compares_distances_refuses_what_ruins_the_mean() -> None:
    """So that the test above does not pass because everything breaks everything."""
    for attack in ("sign-flip", "ipm", "gaussian"):
        assert attacked("krum", attack, {}, "own", 4).accuracy > clean("krum", 4) - 0.1


def test_the_trigger_opens_the_backdoor_and_leaves_the_accuracy() -> None:
    problem = digits(4)
    made = compose.make_defense(compose.parse_defense("fedavg"), problem.task)
    trigger = compose.make_poisoning(compose.parse_attack("pixel-trigger", {}), knowledge_of(problem, made, "own"))
    run = attacked("fedavg", "pixel-trigger", {"scale": "5"}, "own", 4)
    assert success_rate(triggered_inputs(trigger, problem), problem, run.in_use)["attack_success_rate"] > 0.9
    honest = federation.run(made, problem, Rng(0).child("federation"))
    assert success_rate(triggered_inputs(trigger, problem), problem, honest.in_use)["attack_success_rate"] < 0.2
    assert run.accuracy > clean("fedavg", 4) - 0.15
