"""Shamir's secret sharing (1979): any t of n shares give the secret, t − 1 shares give no information about it.

    f(x) = secret + c_1 x + … + c_{t−1} x^{t−1}  mod p,   c uniform;  the share of x is f(x), x = 1 … n
    secret = Σ_x λ_x f(x),  λ_x = Π_{z≠x} z / (z − x)  mod p,  over any t points x

Available libraries draw their own coefficients, so that a replay would differ, or share at most 16 bytes.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from fedarena.core.rng import Rng

PRIME = 2**256 + 297
"""The least prime above 2^256: every 32-byte secret is an element."""

SHARE = 33
"""Bytes of a share."""


def split(secret: int, points: Collection[int], t: int, rng: Rng, prime: int = PRIME) -> dict[int, int]:
    """Shares f(x) of a secret in [0, prime) by point x, any t of which give it; 0 < x < prime."""
    wide = prime.bit_length() // 8 + 17  # 128 bits more than the prime: the rest of the division is as good as uniform
    drawn = rng.numpy().bytes(wide * (t - 1))
    rising = [secret, *(int.from_bytes(drawn[i : i + wide], "little") % prime for i in range(0, len(drawn), wide))]
    falling = rising[::-1]
    return {x: _evaluate(falling, x) % prime for x in points}


def _evaluate(falling: list[int], x: int) -> int:
    """Horner's rule, highest power first. x is small: one division at the end is faster than one a step."""
    value = 0
    for coefficient in falling:
        value = value * x + coefficient
    return value


def weights(points: Collection[int], prime: int = PRIME) -> dict[int, int]:
    """λ_x for every x in `points`: the same for all secrets whose shares are at these points."""
    weights = {}
    for x in points:
        above = math.prod(z for z in points if z != x)
        below = math.prod(z - x for z in points if z != x)  # of small numbers: one division is faster than many
        weights[x] = above * pow(below % prime, -1, prime) % prime
    return weights


def join(shares: Mapping[int, int], lagrange: Mapping[int, int], prime: int = PRIME) -> int:
    """The secret, from shares by point and `weights` of the same points."""
    return sum(weight * shares[x] for x, weight in lagrange.items()) % prime
