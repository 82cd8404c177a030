"""Floats as integers: sums are exact, nothing wraps, and what 32 bits cost."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedarena.core.errors import UserError
from fedarena.defenses.secure.fixed_point import FixedPoint

BITS = st.sampled_from([32, 64])
BOUNDS = st.floats(1e-12, 1e12)


@given(st.data(), BITS, BOUNDS, st.integers(2, 12))
def test_a_sum_decodes_to_the_sum(data: st.DataObject, bits: int, bound: float, n: int) -> None:
    """Exactly for every subset; `fsum` rounds the exact sum once, which 64 bits may need."""
    code = FixedPoint(bits, bound, n)
    values = np.array(data.draw(st.lists(st.floats(-bound, bound), min_size=n, max_size=n)))
    alive = sorted(data.draw(st.sets(st.integers(0, n - 1), min_size=1)))
    encoded = code.encode(values[:, None])
    decoded = code.decode(encoded)[:, 0]
    assert code.decode(encoded[alive].sum(0, dtype=encoded.dtype)).tolist() == [math.fsum(decoded[alive])]
    assert (np.abs(decoded - values) <= code.step / 2).all()


@given(BITS, BOUNDS, st.integers(2, 10_000), st.sampled_from([-1, 1]))
def test_the_largest_sum_does_not_wrap_and_the_step_is_the_least(bits: int, bound: float, n: int, sign: int) -> None:
    code = FixedPoint(bits, bound, n)
    one = code.encode(np.array([sign * bound]))
    total = (one.astype(object) * n) % 2**bits
    assert code.decode(total.astype(one.dtype)).tolist() == [n * float(code.decode(one)[0])]
    assert math.frexp(code.step)[0] == 0.5  # a power of two
    assert n * math.ceil(bound / code.step) < 2 ** (bits - 1)
    assert n * math.ceil(bound / (code.step / 2)) >= 2 ** (bits - 1)


@pytest.mark.parametrize("value", [1.0000001, -2.0, math.inf, math.nan])
def test_values_beyond_the_bound_are_refused(value: float) -> None:
    with pytest.raises(UserError, match="option 'bound' is 1, allowed: at least the largest"):
        FixedPoint(32, 1.0, 3).encode(np.array([0.0, value]))


@pytest.mark.parametrize(
    ("bits", "bound", "low", "high"),
    [(64, 16.0, 0.0, 1e-11), (32, 16.0, 1e-4, 1e-2), (32, 1.0, 1e-5, 1e-3), (32, 1e-2, 1e-7, 1e-5)],
)
def test_what_the_step_costs_loss_differences(bits: int, bound: float, low: float, high: float) -> None:
    """Ten clients, ΔL ~ 1e-4: the error of the weighted sum relative to it, root mean squares. Gradients up to 10 fit
    the default bound; with 32 bits no bound serves both."""
    n = 10
    values = np.random.default_rng(0).normal(0, 1e-4, (n, 20_000)) / n
    code = FixedPoint(bits, bound, n)
    encoded = code.encode(values)
    error = code.decode(encoded.sum(0, dtype=encoded.dtype)) - values.sum(0)
    relative = np.sqrt((error**2).mean() / (values.sum(0) ** 2).mean())
    assert low <= relative <= high
