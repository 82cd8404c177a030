"""Privacy accounting of the subsampled Gaussian mechanism; the arithmetic is dp-accounting's.

A round adds N(0, σ²I) to a sum over a random batch in which each sample weighs at most 1. Two notions of neighbours:

    add/remove    one sample more or less: the sum moves by at most 1. The two-stage DP paper's code counts in this way.
    replace one   one sample exchanged: the sum moves by at most 2. The proof in that paper names this sensitivity.

Rényi accounting (Mironov 2017; Mironov, Talwar & Zhang 2019) with the orders of Opacus and of the paper's code, and the
conversion to (ε, δ) of Canonne, Kamath & Steinke (2020, Proposition 12) and Balle et al. (2020). Where the last of the
orders is the best, larger ones follow: the conversion alone costs ln(1/δ)/(α − 1), so that a small ε needs a large α.
Privacy loss distributions (PLD; Koskela et al. 2020; discretised pessimistically). Both bound ε from above, so the
smaller of the two holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from fedarena.core.errors import UserError

ORDERS = (*(1 + i / 10 for i in range(1, 100)), *range(12, 64))
LARGE_ORDERS = (64, 76, 91, 108, 128, 152, 181, 215, 256, 362, 512, 724, 1024, 1448, 2048)
ROUNDING = 1e-14
"""More than what a Rényi divergence of one round loses in float64."""
CLEARLY = 1e-6
"""By how much more than the least ε an order must give, at least, so that it is left out without being computed."""
TOLERANCE = 1e-4
"""Relative error of σ."""
LARGEST_NOISE = 1e6
"""The largest σ that a search tries."""
SEARCHED, SLACK = (1e-4, 50.0), 0.01
"""The interval in which the two-stage paper's code searches for σ, and the error of ε at which it stops."""
GRID = 1e-3
"""Spacing of a discretised privacy loss, at most, unless it is large."""
STEPS_A_DEVIATION, STEPS = 8, 2e4
"""How many spacings make one standard deviation of a round's loss, and at most how many make the whole ε."""
COARSE = 1e-5
"""Spacing of large ones, as a share of their size: finer, they would not fit in memory."""
UNRESOLVED, UNRESOLVED_A_ROUND = 1e-14, 2e-16
"""More than what a composed distribution loses of δ in float64, which grows with the rounds. Unless it is taken from δ,
ε comes out below the truth: 11.9898 for 11.9921 at q = 1, σ = 20, 1,000 rounds, δ = 1e-12."""
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
    least, best = _by_orders(ORDERS, sigma / sensitivity, delta, rate, rounds)
    if best < ORDERS[-1]:
        return least
    return min(least, _by_orders(LARGE_ORDERS, sigma / sensitivity, delta, rate, rounds)[0])


def _by_orders(orders: Sequence[float], sigma: float, delta: float, rate: float, rounds: int) -> tuple[float, float]:
    """ε of Poisson batches, and the order that gives it.

    A whole order takes a fifth of the time of a fractional one, and its divergence is no more than that of any larger
    order. So fractional orders that cannot give the least ε are left out.
    """
    import dp_accounting as dp

    round_ = dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(sigma))
    event = dp.SelfComposedDpEvent(round_, rounds)
    return _renyi(event, delta, dp.NeighboringRelation.ADD_OR_REMOVE_ONE, orders, rounds, whole_first=True)


@lru_cache(maxsize=1024)
def replace_one(sigma: float, delta: float, rate: float, rounds: int) -> float:
    """ε of `rounds` Poisson batches when one sample is exchanged: the smaller of two bounds.

    One is by privacy loss distributions and tight. The other is `epsilon` at sensitivity 2, which also holds for δ
    below the resolution of discretised distributions. ε is 0 where the sample is ever drawn with a probability of at
    most δ, 1 − (1 − rate)^rounds: what is released is the same otherwise.
    """
    import dp_accounting as dp

    if 1 - (1 - rate) ** rounds <= delta:
        return 0.0
    bound = epsilon(sigma, delta, rate, rounds, 2.0)
    return min(bound, _tight(sigma, delta, rate, rounds, dp.NeighboringRelation.REPLACE_ONE, bound))


@lru_cache(maxsize=1024)
def add_remove(sigma: float, delta: float, rate: float, rounds: int) -> float:
    """ε of `rounds` Poisson batches for one sample more or less: the smaller of the PLD bound and of `epsilon`."""
    import dp_accounting as dp

    bound = epsilon(sigma, delta, rate, rounds)
    return min(bound, _tight(sigma, delta, rate, rounds, dp.NeighboringRelation.ADD_OR_REMOVE_ONE, bound))


def _tight(sigma: float, delta: float, rate: float, rounds: int, neighbours: Any, size: float) -> float:
    """By privacy loss distributions; `size` is about how large a loss there is. ∞ where they tell nothing.

    That is above `LOST`, and where δ is no more than what is lost to rounding.
    """
    unresolved = UNRESOLVED + UNRESOLVED_A_ROUND * rounds
    if size > LOST or delta <= 2 * unresolved:
        return math.inf
    import dp_accounting as dp
    from dp_accounting.pld import PLDAccountant

    with _quiet():
        accountant = PLDAccountant(neighbours, value_discretization_interval=_spacing(sigma, rate, size))
        accountant.compose(dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(sigma)), rounds)
        return float(accountant.get_epsilon(delta - unresolved))


def _spacing(sigma: float, rate: float, size: float) -> float:
    """How far apart the values of a discretised loss lie. A grid that is coarse beside a round's loss widens it."""
    deviation = rate * math.sqrt(math.expm1(min(sigma**-2, 100.0)))
    return max(min(GRID, max(deviation / STEPS_A_DEVIATION, size / STEPS)), COARSE * size)


@lru_cache(maxsize=1024)
def replace_one_fixed(sigma: float, delta: float, batch: int, size: int, rounds: int) -> float:
    """ε of `rounds` batches of exactly `batch` of `size` samples, without replacement, when one sample is exchanged.

    Rényi accounting (Wang, Balle & Kasiviswanathan 2019, Theorem 27), sensitivity 2.
    """
    import dp_accounting as dp

    round_ = dp.SampledWithoutReplacementDpEvent(size, batch, dp.GaussianDpEvent(sigma / 2))
    event = dp.SelfComposedDpEvent(round_, rounds)
    return _renyi(event, delta, dp.NeighboringRelation.REPLACE_ONE, ORDERS, rounds)[0]


@lru_cache(maxsize=1024)
def noise(target: float, delta: float, rate: float, rounds: int) -> float:
    """The smallest σ, to a relative error of 1e-4, that gives (target, δ) with Poisson batches by Rényi accounting.

    For one sample more or less. Never above the target. The two-stage paper's runs used values up to 6 % away, by
    another search (`searched`).

    Raises:
        UserError: a target that the orders do not reach.
    """
    return smallest(lambda s: epsilon(s, delta, rate, rounds), target, _where("accounting=renyi", delta, rounds))


@lru_cache(maxsize=1024)
def noise_tight(target: float, delta: float, rate: float, rounds: int) -> float:
    """As `noise`, by the smaller of both bounds (`add_remove`).

    About ε ∝ σ^-k between two points, so a chord in logarithms finds the next one in few calls.

    Raises:
        UserError: a target that needs more noise than is ever added.
    """

    def excess(sigma: float) -> float:
        return math.log(max(add_remove(sigma, delta, rate, rounds), 1e-3 * target) / target)

    where = _where("accounting=tight", delta, rounds)
    low, high = _bracket(lambda s: add_remove(s, delta, rate, rounds), target, where)
    low = max(low, high / 2)
    above, under, tries = excess(low), excess(high), 0
    while above <= 0:
        low, high, under = low / 2, low, above
        above = excess(low)
    while high - low > TOLERANCE * high:
        tries += 1
        share = above / (above - under) if tries % 3 else 0.5
        step = share * math.log(high / low)
        # A third of the tolerance aside, so that the root soon lies between two points that are near each other.
        aside = TOLERANCE / 3 if tries % 2 else -TOLERANCE / 3
        middle = min(max(low * math.exp(step + aside), low * (1 + TOLERANCE / 4)), high * (1 - TOLERANCE / 4))
        at = excess(middle)
        if at > 0:
            low, above = middle, at
        else:
            high, under = middle, at
    return high


def smallest(bound: Callable[[float], float], target: float, where: str) -> float:
    """The smallest noise, to a relative error of 1e-4, whose ε is at most the target.

    Args:
        bound: ε at a noise. where: what else decides, in the message.

    Raises:
        UserError: a target that needs more noise than is ever added.
    """
    low, high = _bracket(bound, target, where)
    while high - low > TOLERANCE * high:
        middle = (low + high) / 2
        low, high = (middle, high) if bound(middle) > target else (low, middle)
    return high


def _bracket(bound: Callable[[float], float], target: float, where: str) -> tuple[float, float]:
    """A noise that misses the target, or 0, and one that reaches it."""
    low, high = 0.0, 1.0
    while bound(high) > target:
        low, high = high, 2 * high
        if high > LARGEST_NOISE:
            least = bound(LARGEST_NOISE)
            raise UserError(f"option 'epsilon' is {target:g}, allowed with {where}: {least:.2g} or more")
    return low, high


def _where(accounting: str, delta: float, rounds: int) -> str:
    return f"{accounting}, {rounds} rounds and δ = {delta:.2g}"


@lru_cache(maxsize=1024)
def searched(target: float, delta: float, rate: float, rounds: int) -> float:
    """σ by the search of the two-stage paper's code: halve [1e-4, 50] until ε is within 0.01 of the target.

    ε may exceed the target by 0.01, which is 8 % of the paper's smallest target, 1/8.

    Raises:
        UserError: a target that this interval does not hold.
    """

    def bound(sigma: float) -> float:
        return _by_orders(ORDERS, sigma, delta, rate, rounds)[0]

    low, high = SEARCHED
    if bound(high) > target + SLACK:
        raise UserError(
            f"option 'search' is code, allowed for epsilon={target:g}, {rounds} rounds and δ = {delta:.2g}: exact "
            f"(the code looks for σ up to {high:g})"
        )
    middle = (low + high) / 2
    while abs((reached := bound(middle)) - target) > SLACK and high - low > 1e-12 * high:
        low, high = (middle, high) if reached > target else (low, middle)
        middle = (low + high) / 2
    return middle


def _renyi(
    event: Any, delta: float, neighbours: Any, orders: Sequence[float], rounds: int, whole_first: bool = False
) -> tuple[float, float]:
    """ε, and the order that gives it: min over α of ρ(α) + ln(1 − 1/α) − ln(δα)/(α − 1), and at least 0.

    dp-accounting's own conversion says 0 where a divergence is lost to rounding. This one adds what may have been lost.

    Args:
        orders: in ascending order.
        whole_first: leave out fractional orders that the divergences of whole ones rule out.
    """
    import numpy as np
    from dp_accounting.rdp import RdpAccountant

    alpha = np.asarray(orders, dtype=np.float64)
    shrinking, confidence = np.log1p(-1 / alpha), np.log(delta * alpha) / (alpha - 1)
    divergence = np.full(len(alpha), np.inf)

    def compute(which: Any) -> None:
        chosen = [order for order, wanted in zip(orders, which, strict=True) if wanted]
        with _quiet():
            found = np.asarray(RdpAccountant(chosen, neighbours).compose(event)._rdp, dtype=np.float64)
        divergence[which] = np.maximum(found, 0.0) + ROUNDING * rounds

    whole = alpha % 1 == 0 if whole_first else np.full(len(alpha), True)
    compute(whole)
    if not whole.all():
        least = (divergence + shrinking - confidence).min()
        known = np.maximum.accumulate(np.where(whole & np.isfinite(divergence), divergence, 0.0))
        possible = known + shrinking - confidence <= least + CLEARLY * max(1.0, least)
        possible &= ~whole
        if possible.any():
            compute(possible)
    epsilons = divergence + shrinking - confidence
    best = int(np.argmin(epsilons))
    return max(0.0, float(epsilons[best])), float(alpha[best])


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
