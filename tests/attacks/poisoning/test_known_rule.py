"""Attackers who know the rule: the searches, the rule's memory, and what they cannot search."""

from __future__ import annotations

import pytest
import torch
from helpers.poisoning import knowledge, make, problem, round_view, sent
from torch import Tensor

from fedarena.attacks.poisoning.agr_tailored import halving
from fedarena.attacks.poisoning.helpers.expanding_search import largest_of
from fedarena.contracts.aggregator import Call
from fedarena.contracts.poisoning import RoundView
from fedarena.core.rng import Rng
from fedarena.core.tensors import rows
from fedarena.core.threat import NotApplicable
from fedarena.federation import compose
from fedarena.federation.adversary import knowledge_of, why_not

HONEST, F = 9, 3
SEARCHING = ("opt-alie", "opt-ipm", "agr-tailored")


def honest(seed: int = 0, far: float = 0.3) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.tensor([1.0, -2.0, 0.5, 0.0, 3.0, 1.0, 1.0, -1.0]) + far * torch.randn(HONEST, 8, generator=generator)


@pytest.mark.parametrize("name", SEARCHING)
def test_no_strength_on_a_grid_does_clearly_more_harm_to_the_median(name: str) -> None:
    x, on = honest(), knowledge("omniscient", clients=12, corrupted=F, rule="median")
    attack = make(name, on)
    start, p = attack.line(x)  # type: ignore[attr-defined]
    rule = on.defense.rule
    assert rule is not None

    def harm(upload: Tensor) -> float:
        everyone = torch.cat([x, upload.expand(F, -1)])
        vector = rule(everyone, Call(weights=torch.ones(12), f=F, memory={}, rng=Rng(0))).vector
        return float((vector - x.mean(0)).norm())

    reached = harm(sent(attack, round_view(torch.zeros(F, 8), x))[0])
    best = max(harm(start + s * p) for s in torch.linspace(0, 20, 401).tolist())
    assert reached > harm(x.mean(0))
    assert reached >= 0.9 * best


def test_against_a_mean_the_step_is_doubled_as_long_as_tries_are_left() -> None:
    x = honest()
    ours = sent(make("opt-ipm", knowledge("omniscient"), evaluations=5), round_view(torch.zeros(F, 8), x))
    torch.testing.assert_close(ours, -(10.0 + 20 + 40 + 80) * x.mean(0).repeat(F, 1))


@pytest.mark.parametrize("name", SEARCHING)
def test_it_keeps_the_memory_of_the_rule(name: str) -> None:
    """So that its copy of centered clipping clips where the server's does."""
    on = knowledge("omniscient", clients=12, corrupted=F, rule="centered-clipping")
    attack, rule, memory, server = make(name, on), on.defense.rule, {}, {}
    assert rule is not None
    for t in range(3):
        x = honest(t)
        out, memory = attack.craft(round_view(torch.zeros(F, 8), x, t), memory, Rng(0).child(t))
        server = rule(
            torch.cat([x, rows(out)]), Call(weights=torch.ones(12), f=F, memory=server, rng=Rng(1).child(t))
        ).memory
    assert memory.keys() == server.keys()
    for key, value in server.items():
        torch.testing.assert_close(memory[key], value)


def test_a_rule_with_a_reference_is_searched_with_one_of_its_own_samples() -> None:
    p = problem()
    defense = compose.make_defense(compose.parse_defense("fltrust", {"root": "1"}), p.task)
    on = knowledge_of(p, defense, "omniscient")
    ups, _ = defense.clients(p.init, [p.batch(c, Rng(c)) for c in range(10)], [{}] * 10, [{}] * 10)
    view = RoundView(
        round=0,
        participants=10,
        size=3,
        down=dict(p.init),
        own={n: x[:3] for n, x in ups.items()},
        honest={n: x[3:] for n, x in ups.items()},
        honest_clients=tuple(range(7)),
    )
    out, _ = make("opt-ipm", on).craft(view, {}, Rng(0))
    assert bool(rows(out).isfinite().all())
    assert not torch.allclose(rows(out), torch.zeros(1))


def test_a_protocol_that_treats_uploads_in_its_own_way_is_not_searched() -> None:
    p = problem()
    defense = compose.make_defense(compose.parse_defense("two-stage"), p.task)
    reason = why_not(make("opt-alie", knowledge_of(p, defense, "omniscient")))
    assert isinstance(reason, NotApplicable)
    assert "in a way of its own" in reason.reason


def test_the_search_expands_and_then_contracts() -> None:
    tried: list[float] = []

    def value(x: float) -> float:
        tried.append(x)
        return -abs(x - 35.0)

    best = largest_of(value, 8, 10.0, 0.8)
    # 0; steps 10, 20 are better, 40 is worse; then 32, 25.6 and so on from 30.
    assert tried[:5] == [0.0, 10.0, 30.0, 70.0, 62.0]
    assert len(tried) == 8
    assert best == min(tried, key=lambda x: abs(x - 35.0))


def test_a_strength_without_a_finite_harm_is_passed_over() -> None:
    assert largest_of(lambda x: float("inf") if x > 15 else x, 30, 10.0, 0.8) <= 15


def test_halving_finds_the_edge_of_a_threshold() -> None:
    assert halving(lambda s: s if s <= 7.3 else 0.0) == pytest.approx(7.3, abs=0.1)
