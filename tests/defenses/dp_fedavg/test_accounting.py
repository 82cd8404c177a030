"""ε of whole clients against formulas of others, and the noise that reaches it."""

from __future__ import annotations

import math

import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from fedarena.core.errors import UserError
from fedarena.defenses.dp_fedavg.accounting import epsilon, multiplier
from fedarena.defenses.dp_sgd.accountant import replace_one


def exact(z: float, delta: float, rounds: int) -> float:
    """ε of a Gaussian with the mean 2√T/z away (Balle & Wang 2018, Theorem 8)."""
    mu = 2 * math.sqrt(rounds) / z

    def excess(eps: float) -> float:
        return float(norm.cdf(mu / 2 - eps / mu) - math.exp(eps) * norm.cdf(-mu / 2 - eps / mu)) - delta

    return float(brentq(excess, 0.0, 200.0, xtol=1e-10)) if excess(0.0) > 0 else 0.0


@pytest.mark.parametrize("z", [2.0, 10.0, 60.0])
@pytest.mark.parametrize("delta", [1e-2, 1e-5])
@pytest.mark.parametrize("rounds", [1, 60])
def test_where_all_take_part_it_is_exact(z: float, delta: float, rounds: int) -> None:
    assert epsilon(z, delta, 20, 20, rounds) == pytest.approx(exact(z, delta, rounds), rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("rounds", [1, 60])
def test_the_bound_by_privacy_loss_distributions_agrees(rounds: int) -> None:
    assert epsilon(10.0, 1e-5, 20, 20, rounds) == pytest.approx(replace_one(10.0, 1e-5, 1.0, rounds), rel=5e-3)


def test_drawing_clients_takes_less_noise_and_never_costs() -> None:
    everyone, tenth = epsilon(5.0, 1e-4, 1000, 1000, 50), epsilon(5.0, 1e-4, 100, 1000, 50)
    assert tenth < 0.5 * everyone
    assert epsilon(5.0, 1e-4, 999, 1000, 50) <= everyone


@pytest.mark.parametrize("cohort", [(20, 20), (10, 100)])
@pytest.mark.parametrize("target", [0.5, 8.0])
def test_the_multiplier_is_the_smallest_that_reaches_the_target(target: float, cohort: tuple[int, int]) -> None:
    z = multiplier(target, 1e-3, *cohort, 60)
    assert epsilon(z, 1e-3, *cohort, 60) <= target < epsilon(z * (1 - 3e-4), 1e-3, *cohort, 60)


def test_a_target_below_every_noise_is_refused() -> None:
    with pytest.raises(UserError, match="option 'epsilon' is 1e-07, allowed with 60 rounds"):
        multiplier(1e-7, 1e-9, 20, 20, 60)
