"""Steering BAFFLE: what the server makes of it, who can be steered, and that nothing looks at it in a secure sum."""

from __future__ import annotations

import pytest
import torch
from torch.func import grad

from fedarena.contracts.defense import Cohort, State
from fedarena.contracts.poisoning import RoundView
from fedarena.core import registry
from fedarena.core.rng import Rng
from fedarena.core.tensors import flatten
from fedarena.federation import compose
from fedarena.federation import rounds as federation
from fedarena.federation.adversary import Adversary, knowledge_of
from fedarena.problem.problem import build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec


def problem(rounds=40, clients=10, corrupted=2, **schedule):
    times = Schedule(**{"rounds": rounds, "batch_size": 16, "lr": 0.02, **schedule})
    model = registry.find("model", "mlp").parse({"widths": "16"})
    return build(
        ProblemSpec(
            "digits",
            model="mlp",
            partition="iid",
            clients=clients,
            model_options=model,
            schedule=times,
            corrupted=corrupted,
        ),
        0,
    )


def made(defense, given, options=None):
    return compose.make_defense(compose.parse_defense(defense, options or {}), given.task)


def steering(defense, given, **options):
    spec = compose.parse_attack("steer", {name: str(value) for name, value in options.items()})
    return compose.make_poisoning(spec, knowledge_of(given, defense, "own"))


@pytest.mark.parametrize("scheme", ["forward", "central"])
@pytest.mark.parametrize("target", ["flip", "reverse"])
def test_the_server_believes_in_the_gradient_of_choice(scheme, target):
    """From the steered upload alone it estimates the projection of λ g*, with the true directions' exactness."""
    given = problem()
    defense = made("baffle", given, {"directions": "3000", "scheme": scheme})
    attack = steering(defense, given, target=target, strength=5.0, samples=100)
    state = State(dict(given.init))
    sent = defense.broadcast(state, Rng(0))
    up, _ = attack.craft(RoundView(0, participants=10, size=2, down=dict(sent.down), own={}, honest={}), {}, Rng(3))
    believed = flatten(defense.direction(state, sent, up, Cohort((0, 1), torch.ones(2)), Rng(0)).step)
    x, y = attack.knowledge.data.draw(100, Rng(3).child("samples"))
    sign = 1.0 if target == "flip" else -1.0
    g = sign * 5 * flatten(grad(given.task.loss)(given.init, x, 9 - y if target == "flip" else y))
    theory = (3000 / (defense.wire.n + 3000)) ** 0.5
    assert float(torch.nn.functional.cosine_similarity(believed, g, dim=0)) == pytest.approx(theory, abs=0.05)
    assert float(believed @ g / g.norm()) == pytest.approx(float(g.norm()), rel=0.15)


@pytest.mark.parametrize("defense", ["baffle", "baffle+pairwise-masks", "baffle+zero-sum"])
def test_it_wrecks_what_cannot_look(defense):
    given = problem(rounds=100, lr=0.05)
    protocol = made(defense, given, {"directions": "50"})
    rng = Rng(0).child("federation")
    clean = federation.run(protocol, given, rng).accuracy
    adversary = Adversary(steering(protocol, given, strength=20.0), frozenset(given.corrupted), Rng(5))
    steered = federation.run(protocol, given, rng, adversary=adversary).accuracy
    assert clean > 0.5
    assert steered < 0.3


@pytest.mark.parametrize(
    ("defense", "options", "schedule", "why"),
    [
        ("fedavg", {}, {}, "no shared perturbations"),
        ("baffle", {}, {"local_epochs": 1}, "local epochs"),
        ("baffle", {"law": "true"}, {}, "simulated in law"),
        ("baffle", {"perturbations": "client"}, {}, "seeds of their own"),
        ("baffle", {"downlink": "scalars"}, {}, "downlink=scalars"),
    ],
)
def test_where_it_cannot_start(defense, options, schedule, why):
    given = problem(**schedule)
    reason = steering(made(defense, given, options), given).applies()
    assert reason is not None
    assert why in reason.reason
