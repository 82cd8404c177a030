"""ε of a client whose data are all exchanged, of all prefix sums together.

What is released follows from the noisy sums of the complete nodes, each with noise N(0, (zS/n)²I). Other data of a
client that took part in c leaves below a node move its sum by 2Sc/n at most. All nodes together are one
Gaussian mechanism, also where uploads follow from earlier sums (Dong, Roth & Su 2022, Corollary 2), with

    μ = 2·√(Σ c²)/z,   in zCDP ρ = μ²/2:  2·levels/z² for one participation (with sensitivity 1: levels/(2z²))

Where all clients take part in all T rounds, c counts all leaves. Where n of C are drawn in each round, a client's
participations are Binomial(T, n/C), whatever its data are, so that

    δ(ε) ≤ Σ_k P(k)·δ(ε; μ_k),   δ(ε; μ) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ)  (Balle & Wang 2018, Theorem 8)

with μ_k of the worst k rounds. Nothing is gained from not knowing who was drawn: no amplification by sampling.
"""

from __future__ import annotations

import math
from functools import lru_cache

from fedarena.defenses.dp_ftrl.tree import sensitivity

LOST = 1e-15
"""More than what a sum of δ loses in float64."""


@lru_cache(maxsize=1024)
def epsilon(z: float, delta: float, drawn: int, clients: int, rounds: int) -> float:
    """ε at δ for one client's data exchanged, `drawn` of `clients` in each round."""
    import dp_accounting as dp
    import numpy as np

    with np.errstate(divide="ignore"):  # the logarithm of a δ that is 0
        always = float(dp.get_epsilon_gaussian(z / (2 * math.sqrt(sensitivity(rounds, rounds))), delta))
    if drawn == clients or not always or math.isinf(always):
        return always
    from scipy.optimize import brentq
    from scipy.special import log_ndtr, ndtr
    from scipy.stats import binom

    counts = np.arange(1, rounds + 1)
    chances = binom.pmf(counts, rounds, drawn / clients)
    mu = np.array([2 * math.sqrt(sensitivity(int(k), rounds)) / z for k in counts])

    def excess(eps: float) -> float:
        broken = ndtr(mu / 2 - eps / mu) - np.exp(eps + log_ndtr(-mu / 2 - eps / mu))
        return float(chances @ np.maximum(broken, 0)) + LOST - delta

    if excess(0.0) <= 0:
        return 0.0
    return always if excess(always) >= 0 else float(brentq(excess, 0.0, always, rtol=1e-9)) * (1 + 1e-8)
