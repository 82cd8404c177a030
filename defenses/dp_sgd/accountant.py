"""Privacy accounting of the subsampled Gaussian mechanism; the arithmetic is dp-accounting's.

A round adds N(0, σ²I) to a sum over a random batch in which each sample weighs at most 1. Two notions of neighbours:

    add/remove    one sample more or less: the sum moves by at most 1. The two-stage DP paper's code counts in this way.
    replace one   one sample exchanged: the sum moves by at most 2. The proof in that paper names this sensitivity.

Rényi accounting (Mironov 2017; Mironov, Talwar & Zhang 2019) takes the orders of Opacus and of the paper's code, and
the conversion to (ε, δ) of Canonne, Kamath & Steinke (2020, Proposition 12) and Balle et al. (2020). Privacy loss
distributions (Koskela et al. 2020) are used where they are far tighter. They are discretised pessimistically, so they
give an upper bound, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from fedarena.core.errors import UserError

ORDERS = (*(1 + i / 10 for i in range(1, 100)), *range(12, 64))
TOLERANCE = 1e-4
"""Relative error of σ."""
SEARCHED, SLACK = (1e-4, 50.0), 0.01
"""The interval in which the two-stage paper's code searches for σ, and the error of ε at which it stops."""
GRID = 1e-3
"""Spacing of a discretised privacy loss, at least."""
COARSE = 1e-5
"""Spacing of large losses, as a share of their size: with a finer one they would not fit in memory."""
LOST = 1e7
"""A loss above which there is no protection, and which is not discretised."""


@lru_cache(maxsize=1024)
def epsilon(sigma: float, delta: float, rate: float, rounds: int, sensitivity: float = 1.0) -> float:
    """ε of `rounds` Poisson batches, by Rényi accounting.

    Args:
        sigma: standard deviation of the noise on the sum.
        delta: δ. rate: q, the probability of each sample to be in a batch.
        sensitivity: 1 for add/remove. 2 for replace-one as in the paper's proof, which lets the exchanged sample move
            the sum by 2 whenever it is drawn: an upper bound, and a loose one (`replace_one`).
    """
    import dp_accounting as dp

    round_ = dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(sigma / sensitivity))
    return _renyi(dp.SelfComposedDpEvent(round_, rounds), delta, dp.NeighboringRelation.ADD_OR_REMOVE_ONE)


@lru_cache(maxsize=1024)
def replace_one(sigma: float, delta: float, rate: float, rounds: int) -> float:
    """ε of `rounds` Poisson batches when one sample is exchanged: the smaller of two bounds.

    One is by privacy loss distributions and tight. The other is `epsilon` at sensitivity 2, which also holds for δ
    below the resolution of discretised distributions.
    """
    import dp_accounting as dp

    bound = epsilon(sigma, delta, rate, rounds, 2.0)
    return min(bound, _tight(sigma, delta, rate, rounds, dp.NeighboringRelation.REPLACE_ONE, bound))


@lru_cache(maxsize=1024)
def add_remove(sigma: float, delta: float, rate: float, rounds: int) -> float:
    """ε of `rounds` Poisson batches for one sample more or less, by privacy loss distributions; `epsilon` bounds it."""
    import dp_accounting as dp

    bound = epsilon(sigma, delta, rate, rounds)
    return min(bound, _tight(sigma, delta, rate, rounds, dp.NeighboringRelation.ADD_OR_REMOVE_ONE, bound))


def _tight(sigma: float, delta: float, rate: float, rounds: int, neighbours: Any, size: float) -> float:
    """ε by privacy loss distributions; `size` is about the size of the losses. ∞ above `LOST`."""
    if size > LOST:
        return math.inf
    import dp_accounting as dp
    from dp_accounting.pld import PLDAccountant

    with _quiet():
        accountant = PLDAccountant(neighbours, value_discretization_interval=max(GRID, COARSE * size))
        accountant.compose(dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(sigma)), rounds)
        return float(accountant.get_epsilon(delta))


@lru_cache(maxsize=1024)
def replace_one_fixed(sigma: float, delta: float, batch: int, size: int, rounds: int) -> float:
    """ε of `rounds` batches of exactly `batch` of `size` samples, without replacement, when one sample is exchanged.

    Rényi accounting (Wang, Balle & Kasiviswanathan 2019, Theorem 27), sensitivity 2.
    """
    import dp_accounting as dp

    round_ = dp.SampledWithoutReplacementDpEvent(size, batch, dp.GaussianDpEvent(sigma / 2))
    return _renyi(dp.SelfComposedDpEvent(round_, rounds), delta, dp.NeighboringRelation.REPLACE_ONE)


@lru_cache(maxsize=1024)
def noise(target: float, delta: float, rate: float, rounds: int) -> float:
    """The smallest σ, to a relative error of 1e-4, that gives (target, δ) with Poisson batches under add/remove.

    Never above the target. The two-stage paper's runs used values up to 6 % away, by another search (`searched`).
    """
    low, high = 0.0, 1.0
    while epsilon(high, delta, rate, rounds) > target:
        low, high = high, 2 * high
    while high - low > TOLERANCE * high:
        middle = (low + high) / 2
        low, high = (middle, high) if epsilon(middle, delta, rate, rounds) > target else (low, middle)
    return high


@lru_cache(maxsize=1024)
def searched(target: float, delta: float, rate: float, rounds: int) -> float:
    """σ by the search of the two-stage paper's code: halve [1e-4, 50] until ε is within 0.01 of the target.

    ε may exceed the target by 0.01, which is 8 % of the paper's smallest target, 1/8.

    Raises:
        UserError: a target that this interval does not hold.
    """
    low, high = SEARCHED
    if epsilon(high, delta, rate, rounds) > target + SLACK:
        raise UserError(
            f"option 'search' is code, allowed for epsilon={target:g}, {rounds} rounds and δ = {delta:.2g}: exact "
            f"(the code looks for σ up to {high:g})"
        )
    middle = (low + high) / 2
    while abs((reached := epsilon(middle, delta, rate, rounds)) - target) > SLACK and high - low > 1e-12 * high:
        low, high = (middle, high) if reached > target else (low, middle)
        middle = (low + high) / 2
    return middle


def _renyi(event: Any, delta: float, neighbours: Any) -> float:
    from dp_accounting.rdp import RdpAccountant

    with _quiet():
        return float(RdpAccountant(ORDERS, neighbours).compose(event).get_epsilon(delta))


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress absl's warnings that a series of a high order did not converge: such an order is not the minimum."""
    from absl import logging

    before = logging.get_verbosity()
    logging.set_verbosity(logging.ERROR)
    try:
        yield
    finally:
        logging.set_verbosity(before)
