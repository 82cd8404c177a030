"""The statements that Xiang et al. 2023 prove, each with the paper's constant and with one at which it fails."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from torch import Tensor, nn

from fedarena.core.registry import find
from fedarena.core.rng import Rng
from fedarena.defenses.dp_sgd import accountant
from fedarena.defenses.dp_sgd.protocol import DPSGD
from fedarena.defenses.two_stage.first_stage import FirstStage, critical
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Batch, Task

# -- Equation 7: a normalised gradient points along the true one ------------------------------------


def shortfall(true: Tensor, noise: Tensor, constant: float) -> float:
    """⟨∇F, (∇F + ξ)/‖∇F + ξ‖⟩ − (‖∇F‖/3 − c ‖ξ‖); below 0 where the inequality does not hold."""
    sample = true + noise
    return float(true @ sample / sample.norm() - true.norm() / 3 + constant * noise.norm())


@settings(max_examples=200, deadline=None)
@given(d=st.integers(1, 50), size=st.floats(0.01, 100), seed=st.integers(0, 10_000))
def test_equation_7_holds_for_every_noise(d: int, size: float, seed: int) -> None:
    g = Rng(seed).torch()
    true, noise = torch.randn(2, d, generator=g, dtype=torch.float64)
    assert shortfall(true, size * noise, 8 / 3) >= -1e-9
    against = -true * (1 + 1e-6)  # the worst of all: just longer than the gradient, and against it
    assert shortfall(true, against, 8 / 3) >= -1e-9


def test_the_constant_of_equation_7_is_twice_what_it_needs() -> None:
    true = torch.tensor([1.0, 0.0], dtype=torch.float64)
    worst = min(
        shortfall(true, size * torch.tensor([math.cos(a), math.sin(a)], dtype=torch.float64), 4 / 3)
        for size in torch.logspace(-2, 2, 401).tolist()
        for a in torch.linspace(0, math.pi, 181).tolist()
    )
    assert worst >= -1e-9
    assert shortfall(true, -true * (1 + 1e-6), 4 / 3 - 0.01) < 0


# -- Theorem 1: convergence ---------------------------------------------------------------------------


class Distance(nn.Module):
    """W − x: with the loss mse, F(W) = ½ ‖W − x − e_y‖², whose gradient is 1-Lipschitz."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.zeros(d))

    def forward(self, x: Tensor) -> Tensor:
        return self.w - x.flatten(1)


def mean_gradient(d: int, batch: int, sigma: float, lr: float, rounds: int) -> tuple[float, float]:
    """(1/T) Σ ‖∇F(w^t)‖ of one worker whose samples are all alike (ν = 0), and F(w⁰)."""
    schedule = Schedule(rounds=rounds, batch_size=batch, lr=lr, loss="mse")
    task = Task(Distance(d), input_shape=(d,), n_classes=d, sizes=(batch,), schedule=schedule)
    options = {"epsilon": "none", "noise": f"{sigma}", "bound": "normalise", "sampling": "fixed"}
    defense = DPSGD(find("defense", "dp-sgd").parse(options), task)
    target = torch.full((d,), 2 / math.sqrt(d))
    sample = Batch(target.repeat(1, batch, 1), torch.zeros(1, batch, dtype=torch.int64))
    w, lengths = {"w": torch.zeros(d)}, []
    optimum = target + nn.functional.one_hot(torch.tensor(0), d)
    start = 0.5 * float((w["w"] - optimum).square().sum())
    for t in range(rounds):
        up, _ = defense.client(w, sample, {}, defense.draw(Rng(t)))
        w = {"w": w["w"] - lr * up["w"]}
        lengths.append(float((w["w"] - optimum).norm()))
    return sum(lengths) / rounds, start


@pytest.mark.parametrize("lr", [0.01, 0.05])
def test_theorem_1_bounds_the_mean_gradient(lr: float) -> None:
    """≤ 3F(w⁰)/(Tη) + (3Lη/2)(1 + σ²d/b²) + 8ν, L = 1 and ν = 0; with a third of it no longer."""
    d, batch, sigma, rounds = 200, 4, 4.0, 2000
    mean, start = mean_gradient(d, batch, sigma, lr, rounds)
    bound = 3 * start / (rounds * lr) + 1.5 * lr * (1 + sigma**2 * d / batch**2)
    assert mean <= bound
    assert mean > bound / 4


def test_equation_4_is_the_rate_that_minimises_the_bound() -> None:
    """η = (1/σ)·√(2F b²/(T L d)), so that the best rate is as 1/σ; M is then √(36 F L d σ²/(2 b² T))."""
    start, smooth, d, batch, rounds, sigma = 3.0, 1.0, 20_000, 16, 1000, 2.0

    def bound(lr: float) -> float:
        return 3 * start / (rounds * lr) + 1.5 * smooth * lr * (sigma**2 * d / batch**2)

    best = math.sqrt(2 * start * batch**2 / (rounds * smooth * d)) / sigma
    assert bound(best) == pytest.approx(math.sqrt(36 * start * smooth * d * sigma**2 / (2 * batch**2 * rounds)))
    assert bound(best) < min(bound(0.98 * best), bound(1.02 * best))


# -- Theorem 2 of Section 4.3: where the sorted coordinates of an accepted upload lie ------------------


def interval(d: int, level: float) -> tuple[Tensor, Tensor]:
    """[E_u⁻¹(k/d), E_l⁻¹((k − 1)/d)] for k = 1 … d, with E_u = min(1, Φ + D) and E_l = max(0, Φ − D)."""
    largest, k = critical(d, level), torch.arange(1, d + 1, dtype=torch.float64)
    low = stats.norm.ppf((k / d - largest).clamp_min(0).numpy())
    high = stats.norm.ppf(((k - 1) / d + largest).clamp_max(1).numpy())
    return torch.from_numpy(low), torch.from_numpy(high)


@settings(max_examples=100, deadline=None)
@given(d=st.integers(5, 400), level=st.sampled_from([0.01, 0.05, 0.2]), seed=st.integers(0, 10_000), data=st.data())
def test_equation_5_is_the_ks_test(d: int, level: float, seed: int, data: st.DataObject) -> None:
    """A sequence passes exactly if each of its coordinates lies in its interval; either end may be reached."""
    low, high = interval(d, level)
    share = torch.rand(d, generator=Rng(seed).torch(), dtype=torch.float64)
    inner = (low.clamp_min(-6) * (1 - share) + high.clamp_max(6) * share).sort()[0]
    test, k = FirstStage(1e12, level), data.draw(st.integers(0, d - 1))
    assert not bool(test.rejects(inner[None], 1.0))
    for end, outside in ((low[k], -1e-6), (high[k], 1e-6)):
        moved = inner.clone()
        if not math.isfinite(end):
            continue
        # The others stay in order, so that the moved one is still the k-th.
        moved[: k + 1 if outside > 0 else 0] = torch.minimum(moved[: k + 1 if outside > 0 else 0], end)
        moved[k if outside < 0 else d :] = torch.maximum(moved[k if outside < 0 else d :], end)
        moved[k] = end + outside
        moved = torch.where(torch.arange(d) < k, moved.clamp_max(float(moved[k])), moved.clamp_min(float(moved[k])))
        moved[k] = end + outside
        assert bool(test.rejects(moved[None], 1.0))


# -- Theorem 1 of Section 5: privacy -------------------------------------------------------------------


def test_the_noise_for_a_privacy_level_is_as_the_theorem_has_it() -> None:
    """σ ≥ c₂ q √(T ln(1/δ))/ε suffices: with c₂ = 2 wherever ε < q²T, and with c₂ = 1 nowhere."""
    for epsilon, rate, rounds, delta in ((0.5, 0.01, 20_000, 1e-5), (1.0, 0.02, 10_000, 1e-5), (0.2, 0.05, 2000, 1e-6)):
        assert epsilon < rate**2 * rounds
        needed = accountant.noise(epsilon, delta, rate, rounds)
        scale = rate * math.sqrt(rounds * math.log(1 / delta)) / epsilon
        assert scale < needed < 2 * scale
