"""Clipping, filters and sign rules without a memory, each against its definition with loops over rows and numbers."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from helpers.loops import Row, assert_near, average, caf, distance, norm
from helpers.rules import Uploads, rule, tried, uploads
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.cluster import HDBSCAN

from fedarena.contracts.aggregator import Aggregate, Aggregator, Call
from fedarena.core.errors import UserError
from fedarena.core.options import NoOptions
from fedarena.core.rng import Rng
from fedarena.defenses.aggregators.flame import majority
from fedarena.testing.rule_laws import aggregate as run


class Unequal(Aggregator):
    """Weights 1, 2, 3, …; it keeps what it was given."""

    def __call__(self, x: torch.Tensor, call: Call) -> Aggregate:
        self.x, self.call = x, call
        share = torch.arange(1.0, len(x) + 1).to(x)
        return Aggregate(share @ x, share)


def clipped_to(rows: Sequence[Row], bound: float) -> list[list[float]]:
    return [[t * min(1.0, bound / norm(row)) for t in row] for row in rows]


@tried
@given(uploads(lambda f: 2 * f + 1), st.sampled_from([0.5, 3.0, 50.0]))
def test_clipping(u: Uploads, c: float) -> None:
    inner = Unequal(NoOptions())
    done = run(rule("clipping", inner, c=c), u.x, u.f)
    for found, expected in zip(inner.x, clipped_to(u.rows, c), strict=True):
        assert_near(found, expected)
    assert done.used is not None
    torch.testing.assert_close(done.used @ u.x, done.vector)
    torch.testing.assert_close(done.votes, torch.arange(1.0, len(u.x) + 1).double())


@tried
@given(uploads(lambda f: 2 * f + 1))
def test_arc(u: Uploads) -> None:
    inner, n = Unequal(NoOptions()), len(u.x)
    done = run(rule("arc", inner), u.x, u.f)
    lengths = sorted((norm(row) for row in u.rows), reverse=True)
    k = math.floor(2 * u.f * (n - u.f) / n)
    for found, expected in zip(inner.x, clipped_to(u.rows, lengths[k]), strict=True):
        assert_near(found, expected)
    assert int((inner.x != u.x).any(1).sum()) <= k
    assert done.used is not None
    torch.testing.assert_close(done.used @ u.x, done.vector)


@tried
@given(uploads(lambda f: 2 * f + 1))
def test_caf(u: Uploads) -> None:
    done = run(rule("caf"), u.x, u.f)
    assert_near(done.vector, caf(u.rows, u.f), 1e-6)
    assert done.used is not None
    torch.testing.assert_close(done.used.sum(), torch.tensor(1.0, dtype=torch.float64))


def test_caf_leaves_a_pair_of_colluders_on_one_side_out() -> None:
    x = torch.randn(12, 6, generator=torch.Generator().manual_seed(0))
    x[[2, 7]] += 20
    done = run(rule("caf"), x, 2)
    assert done.used is not None
    assert done.used[[2, 7]].max() < 1e-3
    assert (done.used > 0).sum() >= 8


def test_caf_ends_where_all_others_are_equal() -> None:
    x = torch.ones(9, 5)
    x[3] = 100.0
    torch.testing.assert_close(run(rule("caf"), x, 4).vector, torch.ones(5))


@tried
@given(uploads(lambda f: 2 * f + 1), st.integers(0, 3), st.sampled_from([0.0, 0.01]))
def test_flame(u: Uploads, min_samples: int, noise: float) -> None:
    n = len(u.x)
    assume(u.x.shape[1] > 1)  # else every distance is 0 or 2, up to rounding
    done = run(rule("flame", noise=noise, min_samples=min_samples), u.x, u.f, seed=5)
    cosines = [[sum(s * t for s, t in zip(a, b, strict=True)) / (norm(a) * norm(b)) for b in u.rows] for a in u.rows]
    away = np.array([[0.0 if i == j else max(0.0, 1 - cosines[i][j]) for j in range(n)] for i in range(n)])
    clusters = HDBSCAN(
        min_cluster_size=n // 2 + 1,
        min_samples=min(min_samples + 1, n),
        metric="precomputed",
        allow_single_cluster=True,
        copy=True,
    ).fit_predict(away)
    kept = [i for i in range(n) if clusters[i] == 0] or list(range(n))
    assert done.used is not None
    assert [i for i in range(n) if done.used[i] > 0] == kept
    bound = statistics.median(norm(a) for a in u.rows)
    z = torch.randn(u.x.shape[1], generator=Rng(5, ("noise",)).torch()).tolist()
    mean = average(clipped_to([u.rows[i] for i in kept], bound))
    assert_near(done.vector, [m + noise * bound * t for m, t in zip(mean, z, strict=True)], 1e-6)
    assert done.votes is not None
    assert set(done.votes.tolist()) <= {0.0, 1 / len(kept)}


def test_flame_keeps_the_majority_that_points_one_way_at_any_length() -> None:
    g = torch.Generator().manual_seed(0)
    honest = torch.ones(13, 40) + 0.3 * torch.randn(13, 40, generator=g)
    other = torch.cat([torch.ones(20), -torch.ones(20)]) + 0.05 * torch.randn(7, 40, generator=g)
    x = torch.cat([other, honest * torch.arange(1.0, 14.0)[:, None]])
    done = run(rule("flame"), x, 7)
    assert done.votes is not None
    assert (done.votes[:7] == 0).all()
    assert (done.votes[7:] > 0).sum() >= 11


def test_a_cluster_of_half_the_rows_is_no_majority() -> None:
    """Two groups of five at a right angle: neither has six, so that the only cluster is all."""
    away = np.kron(1 - np.eye(2), np.ones((5, 5))) + 0.01 * (1 - np.eye(10))
    assert majority(away, 1).all()
    six = np.ones((10, 10))
    six[:6, :6] = 0.01
    np.fill_diagonal(six, 0)
    assert majority(six, 1).tolist() == [True] * 6 + [False] * 4


@tried
@given(uploads(lambda f: 2 * f + 1), st.none() | st.integers(1, 15), st.booleans())
def test_rlr(u: Uploads, theta: int | None, zeros: bool) -> None:
    x = u.x.round() if zeros else u.x
    theta = None if theta is None else min(theta, len(x))
    inner = run(rule("median"), x, u.f).vector.tolist()
    expected = []
    for j, column in enumerate(zip(*x.tolist(), strict=True)):
        agreement = abs(sum((t > 0) - (t < 0) for t in column))
        expected.append(inner[j] if agreement >= (math.ceil(0.4 * len(x)) if theta is None else theta) else -inner[j])
    assert_near(run(rule("rlr", rule("median"), theta=theta), x, u.f).vector, expected)


def test_rlr_keeps_the_inner_rule_s_verdict_and_claims_no_weights() -> None:
    x = torch.randn(9, 30, generator=torch.Generator().manual_seed(0))
    done, bare = (run(made, x, 2) for made in (rule("rlr", rule("krum")), rule("krum")))
    assert done.used is None
    assert torch.equal(done.weight, bare.used)


def test_a_threshold_that_no_vote_can_reach_is_refused() -> None:
    rule("rlr", rule("mean"), theta=10).check(10, 2)
    with pytest.raises(UserError, match=r"^aggregator rlr: 10 uploads .* theta uploads or more, option theta is 11"):
        rule("rlr", rule("mean"), theta=11).check(10, 2)


def lasa(
    rows: Sequence[Row], shapes: Sequence[Sequence[int]], sparsity: float, limits: tuple[float, float], sparse: bool
) -> list[float]:
    """LASA with loops."""
    bound = statistics.median(norm(a) for a in rows)
    clipped = clipped_to(rows, bound)
    spans, start = [], 0
    for shape in shapes:
        spans.append(range(start, start + math.prod(shape)))
        start += math.prod(shape)
    matrix = [j for span, shape in zip(spans, shapes, strict=True) if len(shape) > 1 for j in span]
    thin = []
    for row in clipped:
        count = max(int((1 - sparsity) * len(matrix)), 1)
        least = sorted((abs(row[j]) for j in matrix), reverse=True)[count - 1] if matrix else 0.0
        thin.append([0.0 if j in set(matrix) and abs(t) < least else t for j, t in enumerate(row)])
    found = []
    for span in spans:
        lengths = [norm([row[j] for j in span]) for row in thin]
        signs = [[(row[j] > 0) - (row[j] < 0) for j in span] for row in thin]
        balance = [sum(s) / max(sum(map(abs, s)), 1) for s in signs]
        passing = set(range(len(rows)))
        for values, limit in ((lengths, limits[0]), (balance, limits[1])):
            middle, spread = statistics.median(values), statistics.pstdev(values)
            if spread <= 1e-9 * max(map(abs, values)):
                continue
            unusual = [abs(t - middle) / spread for t in values]
            assume(all(abs(z - limit) > 1e-9 for z in unusual))  # rounding decides ties
            passing &= {i for i, z in enumerate(unusual) if z < limit}
        of = thin if sparse else clipped
        kept = sorted(passing) or list(range(len(rows)))
        found += average([[of[i][j] for j in span] for i in kept])
    return found


@tried
@given(
    uploads(lambda f: 2 * f + 1),
    st.sampled_from([0.0, 0.3, 0.9]),
    st.sampled_from([(1.0, 1.0), (2.0, 0.5)]),
    st.booleans(),
    st.integers(0, 12),
)
def test_lasa(u: Uploads, sparsity: float, limits: tuple[float, float], sparse: bool, cut: int) -> None:
    d = u.x.shape[1]
    assume(cut < d)
    shapes = ((d - cut, 1), (cut,)) if cut else ()
    made = rule(
        "lasa",
        sparsity=sparsity,
        norm_limit=limits[0],
        sign_limit=limits[1],
        averaged="sparse" if sparse else "clipped",
    )
    done = run(made, u.x, u.f, shapes=shapes)
    assert_near(done.vector, lasa(u.rows, shapes or ((1, d),), sparsity, limits, sparse))
    assert done.votes is not None
    torch.testing.assert_close(done.votes.sum(), torch.tensor(1.0, dtype=torch.float64))


def test_lasa_leaves_out_one_layer_of_an_upload_and_takes_the_other() -> None:
    x = torch.ones(9, 8) + 0.1 * torch.randn(9, 8, generator=torch.Generator().manual_seed(0))
    x[4, :4] = -1.0
    made = rule("lasa", norm_limit=9.0, sign_limit=1.0)
    done = run(made, x, 1, shapes=((2, 2), (2, 2)))
    assert done.votes is not None
    assert done.votes[4] < done.votes[0]
    assert done.votes[4] > 0
    whole = run(made, x, 1, shapes=((8, 1),))
    assert whole.votes is not None
    assert whole.votes[4] == 0


@tried
@given(uploads(lambda f: 2 * f + 1), st.none() | st.integers(1, 9))
def test_foundationfl(u: Uploads, copies: int | None) -> None:
    inner, n = Unequal(NoOptions()), len(u.x)
    done = run(rule("foundationfl", inner, copies=copies), u.x, u.f, weights=torch.arange(1.0, n + 1))
    high, low = ([pick(column) for column in zip(*u.rows, strict=True)] for pick in (max, min))
    scores = [min(distance(a, high), distance(a, low)) for a in u.rows]
    count = n // 2 if copies is None else copies
    assert torch.equal(inner.x[:n], u.x)
    assert len(inner.x) == n + count
    (chosen,) = {i for i in range(n) if torch.equal(u.x[i], inner.x[n])}
    assert scores[chosen] >= max(scores) * (1 - 1e-9)
    assert (inner.x[n:] == u.x[chosen]).all()
    assert inner.call.weights.tolist() == [*range(1, n + 1), *[chosen + 1] * count]
    assert inner.call.f == u.f
    assert done.used is not None
    torch.testing.assert_close(done.used @ u.x, done.vector)


def test_foundationfl_copies_what_two_colluders_want() -> None:
    """One sends the largest values, the other is farthest from them and from the smallest: it is copied 11 times."""
    x = torch.randn(23, 30, generator=torch.Generator().manual_seed(0))
    x[3], x[4] = 1e9, 1e3
    copied = run(rule("foundationfl", rule("mean")), x, 2).used
    assert copied is not None
    assert copied.argmax() == 4
    assert run(rule("trimmed-mean"), x, 2).vector.abs().max() < 2
    assert (run(rule("foundationfl", rule("trimmed-mean")), x, 2).vector > 100).all()
    assert run(rule("foundationfl", rule("median")), x, 2).vector.abs().max() < 2


def test_foundationfl_copies_long_flipped_uploads_as_often_as_honest_ones() -> None:
    """Each is as far from one extreme as an honest one is from the other: noise decides."""
    copied = 0
    for seed in range(100):
        g = torch.Generator().manual_seed(seed)
        x = torch.randn(100, generator=g) + 0.5 * torch.randn(20, 100, generator=g)
        x[:4] *= -10
        used = run(rule("foundationfl", rule("mean")), x, 4).used
        assert used is not None
        copied += int(used.argmax()) < 4
    assert 8 < copied < 40


@pytest.mark.parametrize("wrapper", ["bucketing", "foundationfl"])
@pytest.mark.parametrize("inner", ["foolsgold", "fldetector"])
def test_rows_without_a_sender_are_refused_where_senders_are_remembered(wrapper: str, inner: str) -> None:
    remembering = rule(inner, rule("median")) if inner == "fldetector" else rule(inner)
    with pytest.raises(UserError, match=rf"^aggregator {wrapper}: the rule inside remembers"):
        rule(wrapper, remembering).check(20, 2)
    with pytest.raises(UserError, match=rf"^aggregator {wrapper}: the rule inside remembers"):
        rule(wrapper, rule("nnm", remembering)).check(20, 2)
    rule("nnm", remembering).check(20, 2)
