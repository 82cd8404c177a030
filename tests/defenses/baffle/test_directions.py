"""Directions from a seed, and Stein's estimate, against the plain sum."""

from __future__ import annotations

from itertools import islice

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedarena.core.errors import UserError
from fedarena.core.peak_memory import peak_bytes
from fedarena.defenses.baffle.directions import directions, stein


def some(seed, n, k):
    return torch.stack(list(islice(directions(seed, n), k)))


@given(st.integers(0, 2**32 - 1), st.integers(1, 200), st.integers(1, 12))
@settings(max_examples=30, deadline=None)
def test_both_ends_draw_the_same_bits_and_fewer_are_a_prefix(seed, n, k):
    z = some(seed, n, k)
    assert z.dtype == torch.float32
    assert z.shape == (k, n)
    assert torch.equal(some(seed, n, k), z)
    assert torch.equal(some(seed, n, k + 3)[:k], z)


def test_nothing_is_drawn_from_the_global_generator():
    torch.manual_seed(0)
    before = torch.get_rng_state()
    some(5, 30, 3)
    stein(5, 30, torch.ones(3), 0.1)
    assert torch.equal(torch.get_rng_state(), before)


def test_other_seeds_and_other_places_give_other_directions():
    a, b = some(1, 400, 2), some(2, 400, 2)
    cosines = torch.nn.functional.cosine_similarity(torch.stack([a[0], a[0], a[1]]), torch.stack([a[1], b[0], b[1]]))
    assert cosines.abs().max() < 0.25


def test_they_are_standard_normal():
    z = some(3, 1000, 50)
    assert abs(float(z.mean())) < 0.02  # 4.5 standard errors
    assert abs(float(z.square().mean()) - 1) < 0.03
    covariance = z @ z.T / 1000
    assert (covariance - torch.eye(50)).abs().max() < 0.25


def test_a_direction_kept_is_not_overwritten_by_the_next():
    drawn = directions(1, 20)
    first = next(drawn)
    copy = first.clone()
    next(drawn)
    assert torch.equal(first, copy)


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_a_seed_has_four_bytes(seed):
    for call in (lambda: directions(seed, 3), lambda: stein(seed, 3, torch.ones(1), 1.0)):
        with pytest.raises(UserError, match=f"seed of perturbations is {seed}, allowed: 0 to 4294967295"):
            call()


@given(st.integers(0, 99), st.integers(1, 60), st.integers(1, 40), st.integers(1, 4000), st.sampled_from([1e-4, 0.3]))
@settings(max_examples=40, deadline=None)
def test_stein_is_the_mean_of_the_directions_weighted_by_the_differences(seed, n, k, chunk, sigma):
    d = torch.randn(k, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * sigma
    plain = sum(z.double() * x for z, x in zip(some(seed, n, k), d, strict=True)) / (k * sigma)
    double, single = stein(seed, n, d, sigma, chunk), stein(seed, n, d.float(), sigma, chunk)
    assert double.dtype == torch.float64
    assert single.dtype == torch.float32
    assert torch.allclose(double, plain, rtol=1e-12, atol=1e-12)
    assert torch.allclose(single.double(), plain, rtol=1e-4, atol=1e-5)


def test_stein_of_half_precision_differences_is_single():
    d = torch.tensor([0.5, -0.25], dtype=torch.float16)
    assert torch.equal(stein(1, 10, d, 0.5), stein(1, 10, d.float(), 0.5))


def test_stein_estimates_the_gradient_of_a_linear_loss():
    """ΔL = σ zᵀg: the estimate is ẑg with E = g and deviation √((n + 1)/K)·‖g‖."""
    n, k, sigma = 20, 20_000, 1e-3
    g = torch.arange(n, dtype=torch.float64) / n
    differences = sigma * some(7, n, k).double() @ g
    error = (stein(7, n, differences, sigma) - g).norm() / g.norm()
    assert error < 2 * ((n + 1) / k) ** 0.5


def test_memory_is_bounded_whatever_k_is():
    n, chunk = 1000, 40_000

    def peak(k, chunk):
        return peak_bytes(lambda: stein(1, n, torch.ones(k), 0.1, chunk))[1]

    assert peak(1000, chunk) - peak(100, chunk) <= 2 * 4 * 900  # the differences themselves, and scaled
    assert peak(100, chunk) < 2 * chunk
    assert peak(1000, 2 * chunk) > 2 * chunk
