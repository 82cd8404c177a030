"""ε of whole clients against dp-accounting and mixtures that are summed up plainly."""

from __future__ import annotations

import math

import dp_accounting as dp
import pytest
from dp_accounting.rdp import RdpAccountant
from scipy.stats import binom, norm

from fedarena.core.errors import UserError
from fedarena.defenses.dp_fedavg.accounting import multiplier
from fedarena.defenses.dp_ftrl.accounting import epsilon
from fedarena.defenses.dp_ftrl.tree import sensitivity


@pytest.mark.parametrize("rounds", [1, 16, 20])
def test_one_participation_costs_what_dp_accounting_says_of_a_tree(rounds: int) -> None:
    z, order = 6.0, 8.0
    accountant = RdpAccountant([order], dp.NeighboringRelation.REPLACE_SPECIAL)
    accountant.compose(dp.SingleEpochTreeAggregationDpEvent(z / 2, rounds))  # data exchanged: twice the sensitivity
    rho = 4 * sensitivity(1, rounds) / (2 * z**2)
    assert order * rho == pytest.approx(float(accountant._rdp[0]))


def broken(eps: float, mu: float) -> float:
    return float(norm.cdf(mu / 2 - eps / mu) - math.exp(eps) * norm.cdf(-mu / 2 - eps / mu))


@pytest.mark.parametrize(("drawn", "z"), [(20, 40.0), (2, 8.0)])
def test_delta_is_the_mean_over_how_often_a_client_takes_part(drawn: int, z: float) -> None:
    eps = epsilon(z, 1e-3, drawn, 20, 12)
    delta = sum(
        float(binom.pmf(k, 12, drawn / 20)) * broken(eps, 2 * math.sqrt(sensitivity(k, 12)) / z) for k in range(1, 13)
    )
    assert eps > 0
    assert delta == pytest.approx(1e-3, rel=1e-3)


def test_the_multiplier_is_the_smallest_that_reaches_the_target() -> None:
    z = multiplier(4.0, 1e-3, 5, 20, 12, epsilon)
    assert epsilon(z, 1e-3, 5, 20, 12) <= 4.0 < epsilon(z * (1 - 3e-4), 1e-3, 5, 20, 12)


def test_a_client_that_is_hardly_ever_drawn_needs_no_noise() -> None:
    assert epsilon(1.0, 1e-2, 1, 10_000, 10) == 0


def test_a_target_below_every_noise_is_refused() -> None:
    with pytest.raises(UserError, match="option 'epsilon' is 1e-07, allowed with 20 rounds"):
        multiplier(1e-7, 1e-9, 20, 20, 20, epsilon)
