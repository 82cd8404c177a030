"""Noise and ε against the two-stage DP paper's runs, closed forms and numerical integration."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import gammaln, log_ndtr, logsumexp

from fedarena.core.errors import UserError
from fedarena.defenses.dp_sgd import accountant

EPSILONS = (2.0, 1.0, 0.5, 0.25, 0.125)
FASHION = (1.497e-4, 320 / 59990, 1500)
RUNS = {
    FASHION: (0.79203, 1.03769, 1.51377, 2.53916, 4.68759),
    (7.105e-4, 0.02198, 455): (1.08042, 1.63584, 2.73447, 4.68759, 8.59384),
    (1.1775e-3, 0.03478, 288): (1.22080, 1.90439, 3.22275, 5.46884, 9.37509),
}
"""δ, q, T of MNIST and Fashion, of USPS and of Colorectal; σ that the authors' runs used for `EPSILONS`."""


def unamplified(sigma: float, delta: float, uses: int, sensitivity: float = 1.0) -> float:
    """The smallest ε when a sample is known to be in `uses` of the sums (no subsampling). Exact.

    Gaussian differential privacy with μ = √uses·sensitivity/σ (Balle & Wang 2018, Theorem 8; Dong et al. 2022):
    δ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ). It is what the paper's code provides, whose batches are drawn once.
    """
    mu = math.sqrt(uses) * sensitivity / sigma

    def at(e: float) -> float:
        return math.exp(log_ndtr(mu / 2 - e / mu)) - math.exp(e + log_ndtr(-mu / 2 - e / mu))

    low, high = 0.0, 1.0
    while at(high) > delta:
        high *= 2
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if at(middle) > delta else (low, middle)
    return high


def lower_bound(sigma: float, delta: float, rate: float, rounds: int) -> float:
    """An ε that `rounds` Poisson batches cannot have less of, under add/remove.

    A party that sees every sum tests whether their total exceeds t. The total of a sample that is in k batches is
    N(k, σ²T), k binomial. A test that says yes with probability P for one data set and Q for its neighbour proves that
    δ(ε) ≥ P − e^ε Q, so that ε ≥ ln((P − δ)/Q) (Kairouz, Oh & Viswanath 2015).
    """
    k, spread = np.arange(rounds + 1), sigma * math.sqrt(rounds)
    binomial = gammaln(rounds + 1) - gammaln(k + 1) - gammaln(rounds - k + 1)
    if rate == 1:
        k, weights = k[-1:], np.zeros(1)
    else:
        weights = binomial + k * math.log(rate) + (rounds - k) * np.log1p(-rate)
    t = np.linspace(-12 * spread, rounds + 12 * spread, 1501)
    found = 0.0
    for sign in (1, -1):
        with_it = logsumexp(weights + log_ndtr(sign * (k - t[:, None]) / spread), axis=1)
        without = log_ndtr(-sign * t / spread)
        p, q = (with_it, without) if sign == 1 else (without, with_it)
        proves = p > math.log(delta)
        bounds = p[proves] + np.log(-np.expm1(math.log(delta) - p[proves])) - q[proves]
        found = max(found, bounds.max(initial=0.0))
    return found


@pytest.mark.parametrize("setting", RUNS, ids=["fashion", "usps", "colorectal"])
def test_the_papers_fifteen_noise_multipliers(setting):
    for target, sigma in zip(EPSILONS, RUNS[setting], strict=True):
        exact = accountant.noise(target, *setting)
        assert exact == pytest.approx(sigma, rel=0.06)  # the authors stop at an error of 0.01, 8 % of the smallest ε
        assert accountant.epsilon(exact, *setting) <= target < accountant.epsilon(exact * (1 - 2e-4), *setting)


@pytest.mark.parametrize("setting", RUNS, ids=["fashion", "usps", "colorectal"])
def test_the_papers_noise_multipliers_are_those_of_its_search(setting):
    found = [accountant.searched(target, *setting) for target in EPSILONS]
    assert found == pytest.approx(RUNS[setting], rel=1e-4)


def test_the_papers_search_says_where_it_does_not_reach():
    with pytest.raises(UserError, match=r"option 'search' is code.*up to 50"):
        accountant.searched(0.1, 1e-4, 1.0, 1000)


@pytest.mark.parametrize("sigma", [1e-9, 1e-3, 0.01])
def test_a_noise_that_protects_nothing_is_counted_all_the_same(sigma):
    """Discretised finely, such losses took terabytes."""
    setting = 1e-4, 0.2, 6
    assert 1e3 < accountant.add_remove(sigma, *setting) <= accountant.epsilon(sigma, *setting) < math.inf
    assert accountant.replace_one(sigma, *setting) <= accountant.epsilon(sigma, *setting, 2.0) < math.inf


@pytest.mark.parametrize("delta", [1e-14, 1e-20, 1e-50])
def test_a_delta_below_the_resolution_of_losses_leaves_renyi_accounting(delta):
    sigma = accountant.noise(2.0, delta, 0.2, 300)
    assert accountant.add_remove(sigma, delta, 0.2, 300) == accountant.epsilon(sigma, delta, 0.2, 300) <= 2
    assert 0 < accountant.replace_one(sigma, delta, 0.2, 300) < 8


SMALL = (1e-5, 0.05, 100)
"""δ, q, T at which ε = 0.1 once gave σ = 50,004."""


@pytest.mark.parametrize(("rounds", "none_is_lost"), [(10, True), (20, False)])
def test_a_sample_that_is_hardly_ever_drawn_loses_nothing(rounds: int, none_is_lost: bool) -> None:
    """With so little noise both bounds say millions, though the sample is drawn at all with a probability of .027."""
    sigma, rate = 1e-3, 1 / 360
    assert accountant.epsilon(sigma, 0.05, rate, rounds, 2.0) > 1e6
    assert (accountant.replace_one(sigma, 0.05, rate, rounds) == 0) == none_is_lost
    assert (1 - (1 - rate) ** rounds <= 0.05) == none_is_lost


def fine(sigma, delta, rate, rounds):
    """ε by dp-accounting's privacy loss distributions on a fine grid."""
    import dp_accounting as dp
    from dp_accounting.pld import PLDAccountant

    found = PLDAccountant(dp.NeighboringRelation.ADD_OR_REMOVE_ONE, value_discretization_interval=2e-5)
    return found.compose(dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(sigma)), rounds).get_epsilon(delta)


@pytest.mark.parametrize(("target", "sigma"), [(0.1, 15.553), (0.05, 29.065), (0.01, 122.16)])
def test_noise_for_a_small_epsilon_is_that_of_a_reference(target, sigma):
    found = accountant.noise_tight(target, *SMALL)
    assert found == pytest.approx(sigma, rel=0.02)
    assert fine(1.02 * found, *SMALL) < target < fine(found / 1.02, *SMALL)
    assert accountant.add_remove(found, *SMALL) <= target
    # Rényi accounting has a few per cent more, and no jump.
    assert found < accountant.noise(target, *SMALL) < 1.2 * found


@pytest.mark.parametrize("target", [0.1, 0.05])
def test_noise_for_a_small_epsilon_is_that_of_opacus(target):
    """At ε = 0.01 Opacus cannot tell: its own error is as large."""
    from opacus.accountants import PRVAccountant

    def opacus(sigma, error=5e-4):
        found, (delta, rate, rounds) = PRVAccountant(), SMALL
        found.history = [(sigma, rate, rounds)]
        return found.get_epsilon(delta, eps_error=error, delta_error=1e-9) - error  # it reports its upper end

    found = accountant.noise_tight(target, *SMALL)
    assert opacus(1.02 * found) < target < opacus(found / 1.02)


def test_noise_has_no_jump_from_one_hundredth_to_ten():
    """σ falls as ε grows, and never by more than the 1.3th power of it."""
    grid = np.sort([*np.geomspace(0.01, 10, 7), 0.102, 0.103, 0.104, 0.11])
    for find in (accountant.noise, accountant.noise_tight):
        sigmas = np.array([find(float(target), *SMALL) for target in grid])
        steps = sigmas[:-1] / sigmas[1:]
        assert (steps > 1).all(), find
        assert (steps < (grid[1:] / grid[:-1]) ** 1.3).all(), find


@pytest.mark.parametrize("delta", [1e-4, 1e-8, 1e-12])
@pytest.mark.parametrize("rate", [1.0, 0.3, 0.001])
@pytest.mark.parametrize(("sigma", "rounds"), [(0.7, 1), (0.8, 30), (20.0, 1000), (1e6, 30)])
def test_no_epsilon_lies_below_what_a_test_proves(sigma, rounds, rate, delta):
    proven = lower_bound(sigma, delta, rate, rounds)
    found = accountant.add_remove(sigma, delta, rate, rounds)
    assert proven <= found <= accountant.epsilon(sigma, delta, rate, rounds)
    if rate == 1:
        assert unamplified(sigma, delta, rounds) <= found * (1 + 1e-6) + 1e-9
        assert unamplified(sigma, delta, rounds, 2.0) <= accountant.replace_one(sigma, delta, rate, rounds) + 1e-9


def test_a_divergence_that_rounding_loses_is_not_taken_for_nothing():
    """q²/σ² = 1e-18: in float64 dp-accounting's divergence is 0 or below, and its ε 0 at any δ."""
    assert accountant.epsilon(1e6, 1e-12, 1e-3, 1) >= accountant.add_remove(1e6, 1e-12, 1e-3, 1)
    assert accountant.add_remove(1e6, 1e-12, 1e-3, 1) >= lower_bound(1e6, 1e-12, 1e-3, 1) > 0
    with pytest.raises(
        UserError, match=r"option 'epsilon' is 0\.0001, allowed with accounting=renyi, .*: 0\.0014 or more"
    ):
        accountant.noise(1e-4, *SMALL)
    with pytest.raises(UserError, match=r"allowed with accounting=tight"):
        accountant.noise_tight(1e-9, 1e-12, *SMALL[1:])


def test_what_the_same_noise_gives_when_a_sample_is_exchanged():
    """The sensitivity that the paper's proof names, against the tight value; both far from, or near, the target."""
    delta, rate, rounds = FASHION
    proof = [accountant.epsilon(sigma, delta, rate, rounds, 2.0) for sigma in RUNS[FASHION]]
    assert proof == pytest.approx([20.87, 8.01, 2.29, 0.666, 0.280], rel=0.01)
    tight = [accountant.replace_one(sigma, delta, rate, rounds) for sigma in RUNS[FASHION]]
    assert tight == pytest.approx([2.19, 1.37, 0.836, 0.458, 0.228], rel=0.01)
    assert all(t < p for t, p in zip(tight, proof, strict=True))


def test_batches_that_are_drawn_once_protect_far_less():
    """16 uses of each sample, as in the authors' code (methods' own figures: 30.3 … 3.1)."""
    found = [unamplified(sigma, FASHION[0], 16) for sigma in RUNS[FASHION]]
    assert found == pytest.approx([30.3, 20.7, 12.4, 6.4, 3.1], rel=0.02)


def test_unamplified_has_its_delta():
    """δ at the ε found, by Monte-Carlo-free integration of (p − e^ε q)₊ for two normals."""
    e = unamplified(2.0, 1e-3, 4)
    x = np.linspace(-30, 40, 400_001)
    p, q = (np.exp(-((x - m) ** 2) / 8) / math.sqrt(8 * math.pi) for m in (2.0, 0.0))
    assert np.trapezoid(np.maximum(p - math.exp(e) * q, 0), x) == pytest.approx(1e-3, rel=1e-4)


@pytest.mark.parametrize(("sigma", "rate"), [(0.8, 0.005), (1.5, 0.02), (4.0, 0.3)])
def test_sensitivity_two_bounds_the_exchange_of_a_sample(sigma, rate):
    """Rényi divergences by integration: (1−q)N(0) + qN(1) against (1−q)N(0) + qN(−1) is below the proof's pair."""
    x = np.linspace(-60 * sigma, 80 * sigma, 400_001)

    def mixture(m):
        each = [math.log(w) - (x - c) ** 2 / (2 * sigma**2) for w, c in ((1 - rate, 0.0), (rate, m))]
        return logsumexp(each, axis=0) - math.log(sigma * math.sqrt(2 * math.pi))

    def renyi(p, q, order):
        return (logsumexp(order * p + (1 - order) * q) + math.log(x[1] - x[0])) / (order - 1)

    base = -(x**2) / (2 * sigma**2) - math.log(sigma * math.sqrt(2 * math.pi))
    for order in (1.5, 2, 4, 8):
        assert renyi(mixture(1.0), mixture(-1.0), order) <= renyi(mixture(2.0), base, order) * (1 + 1e-6)


def test_full_batches_are_the_plain_gaussian_mechanism():
    """q = 1: Rényi divergence α·T/(2σ²), so Rényi accounting lies just above the exact ε."""
    exact = unamplified(5.0, 1e-5, 10)
    assert exact < accountant.epsilon(5.0, 1e-5, 1.0, 10) < 1.1 * exact
    assert accountant.replace_one(5.0, 1e-5, 1.0, 10) == pytest.approx(unamplified(5.0, 1e-5, 10, 2.0), rel=0.02)


def test_more_noise_and_fewer_rounds_cost_less():
    assert accountant.epsilon(1.0, *FASHION) > accountant.epsilon(1.1, *FASHION)
    assert accountant.epsilon(1.0, 1.497e-4, 0.005, 1000) < accountant.epsilon(1.0, 1.497e-4, 0.005, 2000)
    few = accountant.replace_one_fixed(1.0, 1.497e-4, 16, 3000, 1500)
    assert accountant.replace_one_fixed(1.0, 1.497e-4, 32, 3000, 1500) > few > accountant.replace_one(1.0, *FASHION)


def test_absl_stays_quiet_and_as_it_was():
    from absl import logging

    before = logging.get_verbosity()
    accountant.epsilon(0.3, 1e-5, 0.01, 10)
    assert logging.get_verbosity() == before
