"""How many clients a step mixes: known numbers, the derivative as an oracle, and the round played again."""

from __future__ import annotations

from functools import cache

import pytest
import torch

from fedarena.contracts.aggregator import Call
from fedarena.core import registry
from fedarena.core.rng import Rng
from fedarena.core.tensors import flatten, rows
from fedarena.federation import compose
from fedarena.federation import rounds as federation
from fedarena.federation.finished_run import FinishedRun
from fedarena.federation.mixed_clients import effective_numbers, mixed_clients, step_of, weights_in_step
from fedarena.federation.spec import GroupSpec
from fedarena.problem.problem import build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec

CLIENTS = 9


@cache
def finished(rule: str) -> FinishedRun:
    problem = ProblemSpec(
        "digits",
        model="mlp",
        partition="iid",
        clients=CLIENTS,
        model_options=registry.find("model", "mlp").parse({"widths": "8"}),
        schedule=Schedule(rounds=3, batch_size=4),
        assumed_corrupted=2,
    )
    spec = GroupSpec(problem, defense=compose.parse_defense(rule), attack=None, threats=(), seed=0)
    made = build(problem, 0, auxiliary=compose.auxiliary(spec.defense))
    defense = compose.make_defense(spec.defense, made.task)
    return FinishedRun(spec, made, defense, federation.run(defense, made, Rng(0).child("federation"), range(3)))


@pytest.mark.parametrize(
    ("rule", "in_number", "in_broadcast"),
    [
        ("fedavg", CLIENTS, CLIENTS),
        ("mean", CLIENTS, CLIENTS),
        ("krum", 1, 1),
        ("multi-krum", CLIENTS - 2, CLIENTS - 2),
        ("nnm+krum", CLIENTS - 2, CLIENTS - 2),
        ("rlr+mean", CLIENTS, CLIENTS),
        ("trimmed-mean", CLIENTS - 4, None),
        ("median", 1, None),
    ],
)
def test_a_rule_mixes_as_many_as_its_formula_says(rule: str, in_number: float, in_broadcast: float | None) -> None:
    mixed = mixed_clients(finished(rule), 2)
    assert mixed.in_number == pytest.approx(in_number, abs=0.1)
    assert float(mixed.shares.sum()) == pytest.approx(1)
    if in_broadcast is None:  # each number has other clients
        assert CLIENTS * 0.8 < mixed.in_broadcast <= CLIENTS
    else:
        assert mixed.in_broadcast == pytest.approx(in_broadcast, abs=0.1)


def test_the_share_of_krum_s_client_is_one() -> None:
    made = finished("krum")
    assert mixed_clients(made, 1).shares.tolist().index(1.0) == made.round(1).averaged[0]


@pytest.mark.parametrize("rule", ["geometric-median", "norm-bounding", "median", "foolsgold", "fldetector+mean"])
def test_the_step_of_a_round_is_played_again(rule: str) -> None:
    made = finished(rule)
    r = made.round(2)
    played = step_of(made, r)(r.ups)
    assert torch.allclose(played, flatten(made.defense.direction_between(r.params, r.after)).double(), atol=1e-4)


def test_weights_are_the_rule_s_derivatives() -> None:
    """∂d_j/∂x_ij, one number of one client at a time, in the mean over some numbers."""
    made, t = finished("geometric-median"), 2
    r, rule = made.round(t), made.defense.rule
    assert rule is not None
    x = rows({name: up.double() for name, up in r.ups.items()})
    call = Call(torch.ones(CLIENTS), f=2, memory={}, rng=Rng(0))
    some = (x != 0).all(0).nonzero().flatten()[:20].tolist()
    true = torch.zeros(CLIENTS, len(some), dtype=torch.float64)
    for i in range(CLIENTS):
        for k, j in enumerate(some):
            ends = [x.clone(), x.clone()]
            ends[0][i, j] += 1e-6
            ends[1][i, j] -= 1e-6
            up, down = (rule(end, call).vector[j] for end in ends)
            true[i, k] = (up - down) / 2e-6
    assert torch.allclose(weights_in_step(made, t)[:, some].mean(1), true.mean(1), rtol=0.1)


def test_numbers_that_nobody_moves_do_not_count() -> None:
    weights = torch.tensor([[0.0, 3.0, 0.5], [0.0, 0.0, 0.5]])
    mixed = effective_numbers(weights)
    assert mixed.in_number == pytest.approx((1 + 2) / 2)
    assert torch.allclose(mixed.shares, torch.tensor([0.75, 0.25]))
    assert mixed.in_broadcast == pytest.approx(1 / (0.75**2 + 0.25**2))
    assert effective_numbers(torch.zeros(2, 3)).in_broadcast == 0
