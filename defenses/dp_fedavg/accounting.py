"""ε of a client whose data are all exchanged, over the rounds of a training; the arithmetic is dp-accounting's.

A round releases a mean of n of C bounded uploads with noise N(0, (zS/n)²I). Other data of one client move that mean by
2S/n at most, which is 2/z standard deviations. Where every client takes part, T rounds are one Gaussian mechanism with
z/√T in place of z (Dong, Roth & Su 2022, Corollary 2), whose ε is exact (Balle & Wang 2018, Theorem 8). Where n of C
are drawn without replacement, Rényi accounting bounds it (Wang, Balle & Kasiviswanathan 2019, Theorem 27). That bound
is loose for large cohorts. Then ε as if all took part is the smaller one; for whatever cohorts are drawn, it holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

from fedarena.defenses.dp_sgd.accountant import replace_one_fixed, smallest

Accounting = Callable[[float, float, int, int, int], float]
"""(z, δ, clients drawn, clients, rounds) → ε."""


@lru_cache(maxsize=1024)
def epsilon(z: float, delta: float, drawn: int, clients: int, rounds: int) -> float:
    """ε at δ for one client's data exchanged, `drawn` of `clients` in each round."""
    import dp_accounting as dp
    import numpy as np

    with np.errstate(divide="ignore"):  # the logarithm of a δ that is 0
        everyone = float(dp.get_epsilon_gaussian(z / (2 * math.sqrt(rounds)), delta))
    if drawn == clients:
        return everyone
    return min(everyone, replace_one_fixed(z, delta, drawn, clients, rounds))


@lru_cache(maxsize=1024)
def multiplier(
    target: float, delta: float, drawn: int, clients: int, rounds: int, accounting: Accounting = epsilon
) -> float:
    """The smallest z, to a relative error of 1e-4, that gives (target, δ). Never above the target.

    Args:
        accounting: what ε is counted by.

    Raises:
        UserError: a target that needs more noise than is ever added.
    """
    where = f"{rounds} rounds and δ = {delta:.2g}"
    return smallest(lambda z: accounting(z, delta, drawn, clients, rounds), target, where)
