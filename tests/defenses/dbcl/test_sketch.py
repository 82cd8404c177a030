"""The sketch against its definition as a dense matrix, and its moments."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fedarena.defenses.dbcl.sketch import DISTRIBUTIONS, BucketSketch, GaussianSketch, draw

LAWS = st.sampled_from(list(DISTRIBUTIONS))
EACH = pytest.mark.parametrize("law", list(DISTRIBUTIONS))


def dense(seed: int, d: int, s: int, law: str) -> Tensor:
    """S written out entry by entry."""
    sketch = draw(seed, 0, d, s, law)
    if isinstance(sketch, GaussianSketch):
        return sketch.matrix.double()
    assert isinstance(sketch, BucketSketch)
    S = torch.zeros(d, s, dtype=torch.float64)
    for i in range(d):
        S[i, sketch.bucket[i]] = sketch.scale * float(sketch.sign[i])
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
    assert (sketch.coordinates, sketch.size) == (d, s)
    assert sketch.squared_norm() == pytest.approx(float(S.square().sum()))


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**31 - 1), d=st.integers(1, 30), ratio=st.floats(0.05, 0.8), law=LAWS)
def test_has_orthogonal_columns_but_for_its_factor(seed: int, d: int, ratio: float, law: str) -> None:
    """S = Q R, with Qᵀ Q = diag(counts); S† = R⁻¹ (Qᵀ Q)⁺ Qᵀ."""
    s = max(1, round(ratio * d))
    sketch, S, one = draw(seed, 0, d, s, law), dense(seed, d, s, law), torch.eye(s, dtype=torch.float64)
    R, Q = sketch.times_r(one), S @ sketch.times_r(one, inverse=True)
    torch.testing.assert_close(Q @ R, S)
    torch.testing.assert_close(Q.T @ Q, torch.diag(sketch.counts().double()))
    torch.testing.assert_close(sketch.times_r(one, transposed=True), R.T)
    torch.testing.assert_close(sketch.times_r(R.T, transposed=True, inverse=True), one)
    y = torch.randn(2, 3, s, generator=torch.Generator().manual_seed(seed)).double()
    torch.testing.assert_close(sketch.pseudo_inverse(y), y @ torch.linalg.pinv(S))


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


def test_uniform_samples_coordinates_without_replacement() -> None:
    for seed in range(20):
        S = dense(seed, 25, 12, "uniform")
        torch.testing.assert_close(S.T @ S, 25 / 12 * torch.eye(12, dtype=torch.float64))
        assert set(S.unique().tolist()) == {0.0, (25 / 12) ** 0.5}


def test_gaussian_is_drawn_within_vmap_and_again_after_many_others() -> None:
    """An attack may open a broadcast within `vmap`, where torch draws nothing, long after it was sent."""
    first = draw(5, 0, 7, 3, "gaussian").dense()
    for seed in range(100, 140):
        draw(seed, 0, 7, 3, "gaussian")
    x = torch.rand(4, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    sketched = torch.func.vmap(lambda row: draw(5, 0, 7, 3, "gaussian").apply(row))(x)
    torch.testing.assert_close(sketched, x @ first)
    assert torch.equal(draw(5, 0, 7, 3, "gaussian").dense(), first)


@EACH
def test_layers_and_rounds_differ_and_repeat(law: str) -> None:
    one = draw(3, 0, 200, 100, law).dense()
    assert torch.equal(one, draw(3, 0, 200, 100, law).dense())
    for other in (draw(3, 1, 200, 100, law).dense(), draw(4, 0, 200, 100, law).dense()):
        assert not torch.equal(one, other)
        assert not torch.equal(one.abs(), other.abs())


def within(values: Tensor, expected: Tensor | float) -> bool:
    """Whether the mean over the first axis lies within five standard errors."""
    error = values.std(0) / len(values) ** 0.5
    return bool(((values.mean(0) - expected).abs() <= 5 * error + 1e-9).all())


@pytest.mark.parametrize(
    ("law", "d", "s"), [("countsketch", 10, 4), ("balanced", 12, 4), ("uniform", 10, 4), ("gaussian", 10, 4)]
)
def test_unbiased(law: str, d: int, s: int) -> None:
    """E[S Sᵀ] = I."""
    products = torch.stack([(S := draw(seed, 0, d, s, law).dense()) @ S.T for seed in range(3000)])
    assert within(products, torch.eye(d, dtype=torch.float64))
    assert not within(products, torch.eye(d, dtype=torch.float64) + 0.2)


@pytest.mark.parametrize(
    ("law", "d", "s", "factor"),
    [
        ("countsketch", 10, 4, 9 / 4),
        ("countsketch", 16, 8, 15 / 8),
        ("balanced", 12, 4, 2.0),
        ("balanced", 12, 6, 1.0),
        ("uniform", 10, 4, 3 / 2),
        ("uniform", 16, 12, 1 / 3),
        ("gaussian", 10, 4, 11 / 4),
        ("gaussian", 16, 8, 17 / 8),
    ],
)
def test_error_of_one_sketch(law: str, d: int, s: int, factor: float) -> None:
    """E‖W S Sᵀ − W‖²/‖W‖² is (d − 1)/s for CountSketch, q − 1 for buckets of q, d/s − 1 for samples, (d + 1)/s for
    normal entries."""
    g = torch.Generator().manual_seed(0)
    W, errors = torch.randn(3, d, generator=g).double(), []
    for seed in range(3000):
        sketch = draw(seed, 0, d, s, law)
        errors.append((sketch.expand(sketch.apply(W)) - W).square().sum())
    assert within(torch.stack(errors), factor * float(W.square().sum()))
    assert not within(torch.stack(errors), 1.1 * factor * float(W.square().sum())) or law == "balanced"


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


def theorem_2(W: Tensor, V: Tensor, s: int) -> float:
    """(1/s) Σ_ij Σ_{k≠l} (w_ik² v_jl² + w_ik v_jk w_il v_jl): what one sketch of W adds to E‖Δ̂Vᵀ − ΔVᵀ‖²."""
    squares, products = W.square() @ V.square().T, W @ V.T
    lengths = W.square().sum(1)[:, None] * V.square().sum(1)
    return float((lengths + products.square() - 2 * squares).sum()) / s


def linear_errors(W: tuple[Tensor, Tensor], V: Tensor, s: int) -> Tensor:
    """‖Δ̂Vᵀ − ΔVᵀ‖² of many independent pairs of sketches of the old and the new W."""
    (old, new), errors, d = W, [], V.shape[1]
    for seed in range(4000):
        a, b = draw(seed, 0, d, s, "countsketch"), draw(seed + 10**6, 0, d, s, "countsketch")
        estimate = a.expand(a.apply(old)) - b.expand(b.apply(new))
        errors.append(((estimate - (old - new)) @ V.T).square().sum())
    return torch.stack(errors)


def test_theorem_2() -> None:
    """The error of any linear map of Δ̂, exactly, for correlated and for independent entries."""
    g, d, s = torch.Generator().manual_seed(2), 14, 5
    old = torch.randn(3, d, generator=g).double() + 0.5
    new = old - 0.1 * torch.randn(3, d, generator=g).double()
    for V in (torch.randn(4, d, generator=g).double(), old[:2] + 0.3):
        expected = theorem_2(old, V, s) + theorem_2(new, V, s)
        errors = linear_errors((old, new), V, s)
        assert within(errors, expected)
        assert not within(errors, 1.3 * expected)
        assert not within(errors, expected / 1.3)


@pytest.mark.parametrize("mean", [0.0, 1.0])
def test_corollary_3_needs_entries_of_mean_zero(mean: float) -> None:
    """With independent entries the error is (d − 1)/s·‖W Vᵀ‖² for mean 0, and nowhere near d/s otherwise.

    The paper's proof (Lemma 6) puts Θ(d/s)·‖W Vᵀ‖² for Θ(d²/s)·mn, but ‖W Vᵀ‖² itself is Θ(d²)·mn unless a mean is 0.
    """
    g, s, ratios = torch.Generator().manual_seed(3), 10, []
    for d in (50, 200, 800):
        W, V = (torch.randn(200, d, generator=g).double() + mean for _ in range(2))
        ratios.append(theorem_2(W, V, s) / float((W @ V.T).square().sum()) * s / (d - 1))
    if mean:  # the ratio falls like 1/d
        assert ratios[0] > 3 * ratios[1] > 9 * ratios[2]
    else:
        assert ratios == pytest.approx([1.0] * 3, rel=0.1)
