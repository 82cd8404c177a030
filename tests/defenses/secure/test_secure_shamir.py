"""Shamir's shares: t give the secret, t − 1 nothing."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from fedarena.core.rng import Rng
from fedarena.defenses.secure.shamir import PRIME, SHARE, join, split, weights


@given(st.data(), st.integers(0, 2**256 - 1), st.integers(1, 12), st.integers(0, 2**32))
def test_any_t_shares_give_the_secret(data: st.DataObject, secret: int, n: int, seed: int) -> None:
    t = data.draw(st.integers(1, n))
    shares = split(secret, range(1, n + 1), t, Rng(seed))
    points = data.draw(st.permutations(range(1, n + 1)))[:t]
    assert join(shares, weights(points)) == secret
    assert all(0 <= share < PRIME < 2 ** (8 * SHARE) for share in shares.values())


@pytest.mark.parametrize("secret", [0, 1, 2**256 - 1])
def test_fewer_shares_give_something_else(secret: int) -> None:
    shares = split(secret, range(1, 6), 3, Rng(0))
    assert all(join(shares, weights(two)) != secret for two in combinations(shares, 2))


def test_fewer_shares_fit_every_secret_once() -> None:
    """Over a small field, exactly: as the missing share takes every value, so does the secret."""
    prime, n, t = 11, 5, 3
    shares = split(7, range(1, n + 1), t, Rng(0), prime)
    for *known, missing in combinations(range(1, n + 1), t):
        lagrange = weights([*known, missing], prime)
        fitting = [join({**shares, missing: value}, lagrange, prime) for value in range(prime)]
        assert sorted(fitting) == list(range(prime))


@pytest.mark.parametrize("secret", [0, 4])
def test_fewer_shares_are_uniform_whatever_the_secret(secret: int) -> None:
    """Over a small field, by counting: each of the 25 pairs of shares comes up alike."""
    counts = np.zeros((5, 5))
    for seed in range(3000):
        shares = split(secret, range(1, 5), 3, Rng(seed), 5)
        counts[shares[2], shares[4]] += 1
    assert chisquare(counts.ravel()).pvalue > 1e-3


def test_the_prime_is_prime() -> None:
    """Fermat for several bases; every 32-byte secret lies below it."""
    assert all(pow(base, PRIME - 1, PRIME) == 1 for base in (2, 3, 5, 7, 11, 13, 17, 19))
    assert PRIME > 2**256
