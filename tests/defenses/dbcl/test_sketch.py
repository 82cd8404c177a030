"""The sketch against its definition as a dense matrix, and its moments."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fedarena.defenses.dbcl.sketch import draw

LAWS = st.sampled_from(["countsketch", "balanced"])


def dense(seed: int, d: int, s: int, law: str) -> Tensor:
    """S written out entry by entry."""
    sketch = draw(seed, 0, d, s, law)
    S = torch.zeros(d, s, dtype=torch.float64)
    for i in range(d):
        S[i, sketch.bucket[i]] = float(sketch.sign[i])
    return S


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**31 - 1), d=st.integers(1, 30), ratio=st.floats(0.05, 1), law=LAWS)
def test_is_the_dense_matrix(seed: int, d: int, ratio: float, law: str) -> None:
    s = max(1, round(ratio * d))
    sketch, S, g = draw(seed, 0, d, s, law), dense(seed, d, s, law), torch.Generator().manual_seed(seed)
    x, y = torch.randn(2, 3, d, generator=g).double(), torch.randn(2, 3, s, generator=g).double()
    torch.testing.assert_close(sketch.dense(), S, rtol=0, atol=0)
    torch.testing.assert_close(sketch.apply(x), x @ S)
    torch.testing.assert_close(sketch.expand(y), y @ S.T)
    torch.testing.assert_close(sketch.adjoint(y), y @ S.T)
    torch.testing.assert_close(torch.diag(sketch.counts().double()), S.T @ S)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**31 - 1), d=st.integers(1, 40), ratio=st.floats(0.05, 1))
def test_balanced_buckets_are_equal_and_drop_the_remainder(seed: int, d: int, ratio: float) -> None:
    s = max(1, round(ratio * d))
    S = dense(seed, d, s, "balanced")
    torch.testing.assert_close(S.T @ S, d // s * torch.eye(s, dtype=torch.float64))
    assert int((S.abs().sum(1) == 0).sum()) == d - d // s * s


def test_countsketch_keeps_every_coordinate() -> None:
    for seed in range(20):
        assert bool((dense(seed, 25, 12, "countsketch").abs().sum(1) == 1).all())


def test_layers_and_rounds_differ_and_repeat() -> None:
    one = draw(3, 0, 200, 100, "countsketch")
    assert torch.equal(one.dense(), draw(3, 0, 200, 100, "countsketch").dense())
    for other in (draw(3, 1, 200, 100, "countsketch"), draw(4, 0, 200, 100, "countsketch")):
        assert not torch.equal(one.bucket, other.bucket)
        assert not torch.equal(one.sign, other.sign)


def within(values: Tensor, expected: Tensor | float) -> bool:
    """Whether the mean over the first axis lies within five standard errors."""
    error = values.std(0) / len(values) ** 0.5
    return bool(((values.mean(0) - expected).abs() <= 5 * error + 1e-9).all())


@pytest.mark.parametrize(("law", "d", "s"), [("countsketch", 10, 4), ("balanced", 12, 4)])
def test_unbiased(law: str, d: int, s: int) -> None:
    """E[S Sᵀ] = I."""
    products = torch.stack([(S := draw(seed, 0, d, s, law).dense()) @ S.T for seed in range(3000)])
    assert within(products, torch.eye(d, dtype=torch.float64))
    assert not within(products, torch.eye(d, dtype=torch.float64) + 0.2)


@pytest.mark.parametrize(
    ("law", "d", "s", "factor"),
    [("countsketch", 10, 4, 9 / 4), ("countsketch", 16, 8, 15 / 8), ("balanced", 12, 4, 2.0), ("balanced", 12, 6, 1.0)],
)
def test_error_of_one_sketch(law: str, d: int, s: int, factor: float) -> None:
    """E‖W S Sᵀ − W‖² = (d − 1)/s·‖W‖² for CountSketch; (q − 1)·‖W‖² for buckets of q."""
    g = torch.Generator().manual_seed(0)
    W, errors = torch.randn(3, d, generator=g).double(), []
    for seed in range(3000):
        sketch = draw(seed, 0, d, s, law)
        errors.append((sketch.expand(sketch.apply(W)) - W).square().sum())
    assert within(torch.stack(errors), factor * float(W.square().sum()))


def test_theorem_1() -> None:
    """E‖Δ̂ − Δ‖² = (d − 1)/s·(‖W_old‖² + ‖W_new‖²) for option I: the paper's Ω(d/s), with its constant."""
    g, d, s = torch.Generator().manual_seed(1), 20, 10
    old = torch.randn(4, d, generator=g).double()
    new, errors = old - 0.02 * torch.randn(4, d, generator=g).double(), []
    for seed in range(3000):
        a, b = draw(seed, 0, d, s, "countsketch"), draw(seed + 10**6, 0, d, s, "countsketch")
        estimate = a.expand(a.apply(old)) - b.expand(b.apply(new))
        errors.append((estimate - (old - new)).square().sum())
    expected = (d - 1) / s * float(old.square().sum() + new.square().sum())
    assert within(torch.stack(errors), expected)
    assert expected > 1000 * float((old - new).square().sum())
