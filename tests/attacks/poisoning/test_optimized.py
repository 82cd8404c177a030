"""Optimised poisoning: Eq. 10, Fang et al.'s forms against Krum and the trimmed mean."""

from __future__ import annotations

import math

import pytest
import torch
from helpers.poisoning import knowledge, make, round_view, sent
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hn

from fedarena.attacks.poisoning.helpers import fang
from fedarena.contracts.aggregator import Call
from fedarena.core.errors import UserError
from fedarena.core.options import NoOptions
from fedarena.core.rng import Rng
from fedarena.defenses.aggregators.krum import Krum

VALUES = st.integers(-50, 50).map(lambda i: i / 8)


def normal(n: int, d: int, mean: float = 0.0) -> torch.Tensor:
    return mean + torch.randn(n, d, generator=torch.Generator().manual_seed(n * d))


def test_eq10_turns_the_sum_of_all_uploads_round() -> None:
    """M = 3, B = 4: every colluder sends −Σ/2, and the sum of all is −λΣ with λ = 3/2 − 1."""
    honest = [[1.0, 0.0], [2.0, 1.0], [3.0, -1.0], [4.0, 2.0]]
    s = round_view([[9.0, 9.0]] * 3, honest)
    out = sent(make("optimized", knowledge("omniscient", 7, 3)), s)[:, :2]
    torch.testing.assert_close(out, torch.tensor([[-5.0, -1.0]] * 3))
    total = torch.tensor(honest).sum(0)
    torch.testing.assert_close(out.sum(0) + total, -0.5 * total)


def test_the_strength_it_states_is_the_one_it_sends_with() -> None:
    honest = [[1.0, 0.0], [2.0, 1.0], [3.0, -1.0], [4.0, 2.0]]
    attack, total = make("optimized", knowledge("omniscient", 7, 3)), torch.tensor(honest).sum(0)
    out = sent(attack, round_view([[9.0, 9.0]] * 3, honest))[:, :2]
    torch.testing.assert_close(out.sum(0) + total, -attack.strengths["lam"] * total)
    assert make("optimized", knowledge("omniscient", 7, 3), lam=2.0).strengths == {}  # it is in the options


@pytest.mark.parametrize("lam", [0.0, 0.5, 3.0])
def test_eq10_with_a_given_strength(lam: float) -> None:
    honest = [[1.0, 0.0], [2.0, 1.0], [3.0, -1.0], [4.0, 2.0]]
    attack = make("optimized", knowledge("omniscient", 6, 2), lam=lam)  # 2 ≤ √4: the paper's λ would be 0
    assert attack.applies() is None
    out = sent(attack, round_view([[9.0, 9.0]] * 2, honest))[:, :2]
    total = torch.tensor(honest).sum(0)
    torch.testing.assert_close(out.sum(0) + total, -lam * total)
    assert torch.equal(out[0], out[1])


@pytest.mark.parametrize("against", ["krum", "trimmed-mean"])
def test_the_strength_of_eq10_is_not_tuned_elsewhere(against: str) -> None:
    with pytest.raises(UserError, match=f"option 'tune' is 3, allowed with against={against}: 0"):
        make("optimized", knowledge("omniscient", 16, 4), against=against, tune=3)


def test_eq10_copies_are_as_long_as_one_upload_of_noise() -> None:
    noise, on = normal(16, 40_000), knowledge("omniscient", 25, 9)
    flat = torch.cat([noise, normal(9, 40_000)])
    names = {"w": flat.reshape(25, 200, 200)}
    s = round_view([[0.0]] * 9)
    s = type(s)(0, 25, 9, {}, {"w": names["w"][16:]}, {"w": names["w"][:16]}, tuple(range(16)))
    out = make("optimized", on).craft(s, {}, Rng(0))[0]["w"]
    assert float(out[0].norm()) == pytest.approx(200.0, rel=0.02)
    assert torch.equal(out[0], out[8])


@pytest.mark.parametrize(
    ("against", "knows", "clients", "corrupted", "reason"),
    [
        ("eq10", "omniscient", 20, 4, "√16 = 4.00: set lam, or tune=2 or more"),
        ("eq10", "omniscient", 20, 5, ""),
        ("eq10", "own", 20, 5, "knows=omniscient"),
        ("krum", "own", 20, 4, "knows=omniscient"),
        ("krum", "omniscient", 20, 9, "not defined"),
        ("krum", "omniscient", 20, 8, ""),
        ("trimmed-mean", "own", 20, 1, "needs 2"),
        ("trimmed-mean", "own", 20, 2, ""),
        ("trimmed-mean", "omniscient", 20, 1, ""),
    ],
)
def test_where_it_applies(against: str, knows: str, clients: int, corrupted: int, reason: str) -> None:
    found = make("optimized", knowledge(knows, clients, corrupted), against=against).applies()  # type: ignore[arg-type]
    assert (found is None) == (not reason)
    assert found is None or reason in found.reason


@settings(max_examples=60, deadline=None)
@given(hn.arrays("float64", (6, 5), elements=VALUES), st.integers(0, 99))
def test_uploads_lie_beyond_the_honest_range_on_the_wanted_side(x: object, seed: int) -> None:
    uploads = torch.as_tensor(x)
    honest, everyone = uploads[:4], uploads
    out = fang.against_trimmed_mean(honest, everyone, 2, torch.Generator().manual_seed(seed))
    rising = everyone.sum(0) > 0  # the parameter falls without an attack
    low, high = honest.amin(0), honest.amax(0)
    assert bool((out <= low)[:, rising].all())
    assert bool((out >= high)[:, ~rising].all())
    edge = torch.where(rising, low, high)
    assert bool((out.abs() <= 2 * edge.abs()).all())  # b = 2
    assert bool((out.abs() >= edge.abs() / 2).all())


def test_full_knowledge_gives_the_honest_range_and_everybody_s_sign() -> None:
    honest, own = [[1.0], [2.0], [3.0]], [[-20.0], [-20.0]]  # the sum of all is negative: uploads above 3
    attack = make("optimized", knowledge("omniscient", 5, 2), against="trimmed-mean")
    out = sent(attack, round_view(own, honest))[:, 0]
    assert bool((out >= 3).all())
    assert bool((out <= 6).all())
    assert float(out[0]) != float(out[1])


def test_partial_knowledge_puts_uploads_three_to_four_deviations_off() -> None:
    own = [[1.0, -7.0], [3.0, -1.0], [2.0, -4.0]]
    mean, sd = torch.tensor([2.0, -4.0]), torch.tensor([(2 / 3) ** 0.5, 6**0.5])
    out = sent(make("optimized", knowledge(), against="trimmed-mean"), round_view(own))[:, :2]
    away = (mean - out) * mean.sign() / sd
    assert bool(((away >= 3) & (away <= 4)).all())
    assert len(set(away.flatten().tolist())) == 6


def pick(honest: torch.Tensor, upload: torch.Tensor, colluders: int) -> bool:
    """Whether Krum takes the colluders' upload."""
    x = torch.cat([honest, upload.repeat(colluders, 1)])
    used = Krum(NoOptions())(x, Call(weights=torch.ones(len(x)), f=colluders, memory={}, rng=Rng(0))).used
    assert used is not None
    return bool(used[len(honest) :].any())


def test_krum_takes_the_upload_but_not_one_twice_as_strong() -> None:
    honest = normal(12, 50, mean=0.3)
    everyone = torch.cat([honest, normal(4, 50, mean=0.3)])
    upload = fang.against_krum(honest, everyone, 4, 4)
    assert upload is not None
    direction = everyone.sum(0).sign()
    strength = float(upload.norm()) / math.sqrt(50)
    torch.testing.assert_close(upload, -strength * direction)
    assert pick(honest, upload, 4)
    distances = torch.cdist(honest, honest)
    nearest = distances.sort(1).values[:, 1:11].sum(1).min()  # m − c − 2 = 10 others
    bound = float(nearest / (16 - 8 - 1) + honest.norm(dim=1).max()) / math.sqrt(50)
    halvings = math.log2(bound / strength)
    assert halvings == pytest.approx(round(halvings), abs=1e-4)
    assert round(halvings) >= 1
    assert not pick(honest, 2 * upload, 4)


def test_without_a_strength_that_krum_takes_nobody_attacks() -> None:
    honest = torch.tensor([[1.0, 1.0]] * 9 + [[1.0, 1.1]])  # Krum has nine equal uploads to choose from
    assert fang.against_krum(honest, honest, 2, 2) is None
    own = [[5.0, 5.0], [6.0, 6.0]]
    attack = make("optimized", knowledge("omniscient", 12, 2), against="krum")
    out = sent(attack, round_view(own, honest.tolist()))
    torch.testing.assert_close(out[:, :2], torch.tensor(own))


def test_krum_attack_through_the_class_sends_one_upload() -> None:
    honest, own = normal(12, 8, mean=0.3), normal(4, 8, mean=0.3)
    out = sent(make("optimized", knowledge("omniscient", 16, 4), against="krum"), round_view(own, honest))
    expected = fang.against_krum(honest, torch.cat([own, honest]), 4, 4)
    assert expected is not None
    torch.testing.assert_close(out, expected.repeat(4, 1))
