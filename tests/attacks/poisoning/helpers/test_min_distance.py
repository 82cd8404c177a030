"""Min-Max and Min-Sum: the constraint binds, and γ is the authors' search's."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from helpers.poisoning import knowledge, make, round_view, sent
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hn
from torch import Tensor

from fedarena.attacks.poisoning.helpers.honest_estimate import mean_and_deviation
from fedarena.attacks.poisoning.helpers.min_distance import MinDistance, direction

KINDS = ("unit", "sign", "std")
UPLOADS = hn.arrays("float64", st.tuples(st.integers(2, 6), st.integers(1, 5)), elements=st.floats(-9, 9, width=32))


def max_room(x: Tensor, v: Tensor) -> float:
    """max_{i,j} ‖g_i − g_j‖ − max_i ‖v − g_i‖."""
    pairs = max(float((a - b).norm()) for a in x for b in x)
    return pairs - max(float((v - g).norm()) for g in x)


def sum_room(x: Tensor, v: Tensor, bound: Callable[..., float] = min) -> float:
    """min_i Σ_j ‖g_i − g_j‖² − Σ_i ‖v − g_i‖²."""
    sums = [sum(float((a - b).square().sum()) for b in x) for a in x]
    return bound(sums) - sum(float((v - g).square().sum()) for g in x)


def step(name: str, x: Tensor, p: Tensor, **options: str) -> float:
    """γ of an attack."""
    attack = make(name, knowledge(), **options)
    assert isinstance(attack, MinDistance)
    return attack.step(x, p)


@settings(max_examples=100, deadline=None)
@given(UPLOADS, st.sampled_from(KINDS))
def test_the_step_is_allowed_and_a_longer_one_is_not(uploads: object, kind: str) -> None:
    x = torch.as_tensor(uploads)
    mean, deviation = mean_and_deviation(x)
    p = direction(mean, deviation, kind)
    assume(float(p.norm()) > 1e-3 and float(deviation.norm()) > 1e-3)
    for gamma, room in (
        (step("min-max", x, p), max_room),
        (step("min-sum", x, p), sum_room),
        (step("min-sum", x, p, bound="max"), lambda x, v: sum_room(x, v, max)),
    ):
        assert room(x, mean + gamma * p) == pytest.approx(0, abs=1e-4)
        assert room(x, mean + (gamma + 0.01 + 0.01 * gamma) * p) < 0


def halving(fits: Callable[[float], bool]) -> float:
    """The search of the authors' Algorithm 1: from 10, steps of half the size each time, to 1e-5."""
    gamma, step, best = 10.0, 5.0, 0.0
    while abs(best - gamma) > 1e-5 and step > 1e-9:
        if fits(gamma):
            best = gamma
            gamma += step
        else:
            gamma -= step
        step /= 2
    return best


@pytest.mark.parametrize("kind", KINDS)
def test_gamma_is_what_halving_finds(kind: str) -> None:
    x = torch.randn(7, 30, generator=torch.Generator().manual_seed(1), dtype=torch.float64) + 0.5
    mean, deviation = mean_and_deviation(x)
    p = direction(mean, deviation, kind)
    found = halving(lambda gamma: max_room(x, mean + gamma * p) >= 0)
    assert step("min-max", x, p) == pytest.approx(found, abs=2e-5)
    found = halving(lambda gamma: sum_room(x, mean + gamma * p) >= 0)
    assert step("min-sum", x, p) == pytest.approx(found, abs=2e-5)


def test_directions() -> None:
    mean, deviation = torch.tensor([3.0, -4.0]), torch.tensor([0.5, 2.0])
    torch.testing.assert_close(direction(mean, deviation, "unit"), torch.tensor([-0.6, 0.8]))
    torch.testing.assert_close(direction(mean, deviation, "sign"), torch.tensor([-1.0, 1.0]))
    torch.testing.assert_close(direction(mean, deviation, "std"), torch.tensor([-0.5, -2.0]))


def test_on_a_line_by_hand() -> None:
    """Honest 1 and 3: mean 2, largest distance 2, so −unit reaches 1 (two from 3): γ = 1; sums: 4 = 2 + 2γ², γ = 1."""
    for name in ("min-max", "min-sum"):
        out = sent(make(name, knowledge()), round_view([[1.0], [3.0]]))
        torch.testing.assert_close(out[:, 0], torch.tensor([1.0, 1.0]))
    honest = [[0.0], [0.0], [6.0]]  # mean 2; distances to 6: 6 + … sums 36, 36, 72; Σ(μ − g)² = 24
    for bound, gamma in (("min", 2.0), ("max", 4.0)):  # 36 = 24 + 3γ², 72 = 24 + 3γ²
        out = sent(make("min-sum", knowledge("omniscient"), bound=bound), round_view([[9.0]] * 2, honest))
        torch.testing.assert_close(out[:, 0], torch.tensor([2.0 - gamma] * 2))


@pytest.mark.parametrize("name", ["min-max", "min-sum"])
def test_like_uploads_leave_no_room_and_one_own_upload_is_too_few(name: str) -> None:
    out = sent(make(name, knowledge()), round_view([[1.0, 2.0]] * 3))
    torch.testing.assert_close(out[:, :2], torch.tensor([[1.0, 2.0]] * 3))
    assert make(name, knowledge("own", 10, 1)).applies() is not None
    assert make(name, knowledge("omniscient", 10, 1)).applies() is None


@pytest.mark.parametrize("name", ["min-max", "min-sum"])
def test_long_uploads_are_matched_too(name: str) -> None:
    """DP noise makes uploads hundreds long; the authors' search would stop at 20."""
    x = 100 * torch.randn(6, 8, generator=torch.Generator().manual_seed(0))
    room = max_room if name == "min-max" else sum_room
    out = sent(make(name, knowledge("omniscient")), round_view([[0.0]] * 2, x))[0]
    assert room(x.double(), out.double()) == pytest.approx(0, abs=0.5)
    assert float((out - x.mean(0)).norm()) > 20
