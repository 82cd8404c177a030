"""DP-SGD audited in one run of the package's own federation (Steinke, Nasr & Jagielski, NeurIPS 2023).

Each of m canaries is in the client's data or not, by a coin of its own. A canary has one pixel that no other sample
has, so that its clipped gradient points where no other does. The auditor is the server. It adds up what the uploads
have in each canary's direction. It says "in" of the canaries with the most and "out" of those with the least, and
abstains from the others. A run that is (ε, δ)-private for one sample more or less rarely lets it be right so often.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from scipy.stats import binom
from torch import nn

from fedarena.core.registry import find
from fedarena.core.rng import Rng
from fedarena.datasets.dataset import Provenance
from fedarena.defenses.dp_sgd.protocol import DPSGD
from fedarena.federation import rounds as federation
from fedarena.problem.problem import Problem
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Task

CANARIES, ROUNDS, BATCH, DELTA, CLAIM = 2000, 20, 500, 1e-5, 2.0
GUESSES = (50, 100, 200, 400, 800)
"""How many guesses an auditor makes. All are tried, so each has its share of the error."""
ERROR = 0.05
BRIGHT = 100.0
"""The value of a canary's pixel. Beside it the bias has no share in the gradient."""


@dataclass(frozen=True)
class Audit:
    """What one run claims, and what an auditor proves of it."""

    sigma: float
    claim: float
    least: float


def unlikely(epsilon: float, delta: float, canaries: int, guesses: int, right: int) -> float:
    """The largest probability of so many right guesses under (ε, δ) (Steinke et al. 2023, Theorem 5.2)."""
    share = 1 / (1 + torch.exp(torch.tensor(-epsilon, dtype=torch.float64)).item())
    below = [
        float(binom.cdf(right - 1, guesses, share) - binom.cdf(right - i - 1, guesses, share)) for i in range(right + 1)
    ]
    slack = max((below[i] / i for i in range(1, right + 1)), default=0.0)
    return min(1.0, float(binom.sf(right - 1, guesses, share)) + 2 * canaries * delta * slack)


def least_epsilon(delta: float, canaries: int, guesses: int, right: int, error: float) -> float:
    """The largest ε that so many right guesses refute, at confidence 1 − error."""
    low, high = 0.0, 20.0
    if unlikely(low, delta, canaries, guesses, right) > error:
        return 0.0
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (middle, high) if unlikely(middle, delta, canaries, guesses, right) <= error else (low, middle)
    return low


def audited(noise: float = 1.0, seed: int = 0) -> Audit:
    """One federation of one client.

    Args:
        noise: the share of its noise that the client adds; what it claims does not change.
    """
    g = torch.Generator().manual_seed(seed)
    coins = torch.rand(CANARIES, generator=g) < 0.5
    inside = coins.nonzero().flatten()
    x = torch.zeros(len(inside), CANARIES)
    x[torch.arange(len(inside)), inside] = BRIGHT
    y = torch.zeros(len(inside), dtype=torch.long)
    model = nn.Linear(CANARIES, 2)
    schedule = Schedule(rounds=ROUNDS, batch_size=BATCH, lr=1e-6)
    task = Task(model, input_shape=(CANARIES,), n_classes=2, sizes=(len(inside),), schedule=schedule)
    options = find("defense", "dp-sgd").options(epsilon=CLAIM, delta=DELTA)
    honest = DPSGD(options, task)
    start = {name: torch.zeros_like(p) for name, p in model.named_parameters()}
    shard = torch.arange(len(inside))
    problem = Problem(
        task,
        x=x,
        y=y,
        x_test=x[:2],
        y_test=y[:2],
        scale=1.0,
        shards=(shard,),
        init=start,
        provenance=PROVENANCE,
        device=torch.device("cpu"),
    )
    defense = honest if noise == 1.0 else Quieter(options, task, noise)
    run = federation.run(defense, problem, Rng(seed).child("federation"), watch=range(ROUNDS))
    weights = torch.stack([transcript.ups["weight"][0] for transcript in run.rounds]).sum(0)
    order = (weights[1] - weights[0]).argsort(descending=True)
    least = 0.0
    for guesses in GUESSES:
        half = guesses // 2
        right = int(coins[order[:half]].sum() + (~coins[order[-half:]]).sum())
        least = max(least, least_epsilon(DELTA, CANARIES, guesses, right, ERROR / len(GUESSES)))
    return Audit(honest.sigma, honest.guarantees()["epsilon_add_remove_tight"], least)


class Quieter(DPSGD):
    """Adds a share of the noise that it claims."""

    def __init__(self, options: object, task: Task, share: float) -> None:
        super().__init__(options, task)  # type: ignore[arg-type]
        self.share = share

    def draw(self, rng: Rng) -> dict[str, torch.Tensor]:
        return {name: self.share * noise for name, noise in super().draw(rng).items()}


PROVENANCE = Provenance("canaries", None, None, verified=False)


def test_the_bound_is_the_binomial_one_without_a_delta() -> None:
    """All of 100 guesses right: refuted are the ε at which (e^ε/(1 + e^ε))^100 ≤ 5 %, so ε < 3.49."""
    assert least_epsilon(0.0, 1000, 100, 100, 0.05) == pytest.approx(3.49, abs=0.02)
    assert least_epsilon(0.0, 1000, 100, 50, 0.05) == 0
    assert least_epsilon(1e-5, 1000, 100, 100, 0.05) < least_epsilon(0.0, 1000, 100, 100, 0.05)


@pytest.mark.slow
def test_no_audit_proves_more_than_is_claimed(capsys: pytest.CaptureFixture[str]) -> None:
    for seed in range(3):
        found = audited(seed=seed)
        with capsys.disabled():
            print(f"\nseed {seed}, σ = {found.sigma:.3f}: at least ε = {found.least:.2f}, claimed {found.claim:.2f}")
        assert found.least <= found.claim
        assert found.claim == pytest.approx(CLAIM, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.0, 0.25])
def test_the_audit_finds_noise_that_is_missing(noise: float, capsys: pytest.CaptureFixture[str]) -> None:
    found = audited(noise)
    with capsys.disabled():
        print(f"\n{noise:g} of the noise: at least ε = {found.least:.2f}, claimed {found.claim:.2f}")
    assert found.least > found.claim
