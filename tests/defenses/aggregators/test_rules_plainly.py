"""Every rule against its definition, written with loops over rows and coordinates."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from helpers.loops import Row, assert_near, average, distance, norm
from helpers.rules import Uploads, rule, tried, uploads
from hypothesis import given
from hypothesis import strategies as st
from sklearn.cluster import MeanShift, estimate_bandwidth
from torch import Tensor

from fedarena.contracts.aggregator import Aggregate, Aggregator, Call
from fedarena.core.options import NoOptions
from fedarena.core.rng import Rng
from fedarena.defenses.aggregators.bulyan import closest_mean
from fedarena.testing.rule_laws import aggregate as run
from fedarena.testing.rule_laws import call


def krum_scores(rows: Sequence[Row], f: int) -> list[float]:
    """Sum of squared distances to the n − f − 2 (at least one) nearest others."""
    found = []
    for i, a in enumerate(rows):
        others = sorted(distance(a, b) ** 2 for j, b in enumerate(rows) if j != i)
        found.append(sum(others[: max(len(rows) - f - 2, 1)]))
    return found


@tried
@given(uploads())
def test_mean(u: Uploads) -> None:
    assert_near(run(rule("mean"), u.x).vector, average(u.rows))


@tried
@given(uploads())
def test_krum(u: Uploads) -> None:
    done = run(rule("krum"), u.x, u.f)
    assert done.used is not None
    assert sorted(done.used.tolist()) == [0.0] * (len(u.x) - 1) + [1.0]
    best = int(done.used.argmax())
    assert torch.equal(done.vector, u.x[best])
    scores = krum_scores(u.rows, u.f)
    assert scores[best] <= min(scores) * (1 + 1e-9)


@tried
@given(uploads(), st.none() | st.integers(1, 15))
def test_multi_krum(u: Uploads, m: int | None) -> None:
    m = None if m is None else min(m, len(u.x) - u.f)
    done = run(rule("multi-krum", m=m), u.x, u.f)
    count = m or len(u.x) - u.f
    assert done.used is not None
    chosen = [i for i, w in enumerate(done.used.tolist()) if w]
    assert [done.used[i].item() for i in chosen] == [1 / count] * count
    scores = krum_scores(u.rows, u.f)
    assert math.isclose(sum(scores[i] for i in chosen), sum(sorted(scores)[:count]), rel_tol=1e-9)
    assert_near(done.vector, average([u.rows[i] for i in chosen]))


@tried
@given(uploads(lambda f: 2 * f + 1), st.booleans())
def test_median(u: Uploads, ties: bool) -> None:
    x = u.x.round() if ties else u.x
    columns = zip(*x.tolist(), strict=True)
    assert_near(run(rule("median"), x, u.f).vector, [statistics.median(c) for c in columns])


@tried
@given(uploads(lambda f: 2 * f + 1), st.booleans())
def test_trimmed_mean(u: Uploads, ties: bool) -> None:
    x, n = u.x.round() if ties else u.x, len(u.x)
    columns = zip(*x.tolist(), strict=True)
    assert_near(run(rule("trimmed-mean"), x, u.f).vector, [statistics.fmean(sorted(c)[u.f : n - u.f]) for c in columns])


@tried
@given(uploads(lambda f: 2 * f + 1), st.integers(0, 30), st.sampled_from([1e-6, 3.0]))
def test_geometric_median(u: Uploads, iterations: int, eps: float) -> None:
    done = run(rule("geometric-median", iterations=iterations, eps=eps), u.x, u.f)
    weights = [1 / max(statistics.median(distance(a, b) for b in u.rows), eps) for a in u.rows]
    for _ in range(iterations):
        z = average([[w * t * len(u.rows) / sum(weights) for t in a] for w, a in zip(weights, u.rows, strict=True)])
        weights = [1 / max(distance(a, z), eps) for a in u.rows]
    shares = [w / sum(weights) for w in weights]
    assert done.used is not None
    assert_near(done.used, shares, 1e-5)
    assert_near(
        done.vector, [sum(w * a[j] for w, a in zip(shares, u.rows, strict=True)) for j in range(u.x.shape[1])], 1e-5
    )


def test_geometric_median_has_the_least_sum_of_distances() -> None:
    x = torch.randn(12, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    vector = run(rule("geometric-median"), x, 2).vector

    def total(z: Tensor) -> float:
        return float((x - z).norm(dim=1).sum())

    for j in range(5):
        for step in (0.01, -0.01):
            assert total(vector) < total(vector + step * torch.eye(5, dtype=torch.float64)[j])


@tried
@given(uploads(lambda f: 4 * f + 3))
def test_bulyan(u: Uploads) -> None:
    done = run(rule("bulyan"), u.x, u.f)
    left, chosen = list(range(len(u.x))), []
    while len(chosen) < len(u.x) - 2 * u.f:
        rows = [u.rows[i] for i in left]
        scores = krum_scores(rows, u.f) if len(left) > 1 else [0.0]
        equal = [i for i, s in enumerate(scores) if s <= min(scores) * (1 + 1e-9)]
        chosen.append(left.pop(min(equal, key=lambda i: sum(distance(rows[i], b) ** 2 for b in rows))))
    theta = len(chosen)
    assert done.used is not None
    assert {i for i, w in enumerate(done.used.tolist()) if w} == set(chosen)
    assert sorted(set(done.used.tolist()))[-1] == 1 / theta
    expected = []
    for column in zip(*(u.rows[i] for i in chosen), strict=True):
        center = statistics.median(column)
        expected.append(statistics.fmean(sorted(column, key=lambda t: abs(t - center))[: theta - 2 * u.f]))
    assert_near(done.vector, expected)


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=9), st.data())
def test_bulyan_s_values_closest_to_the_median_where_many_are_equal(values: list[int], data: st.DataObject) -> None:
    """Colluders send the same value; which of two that are as far on either side is taken is left open."""
    count, center = data.draw(st.integers(1, len(values))), statistics.median(values)
    away = sorted(abs(v - center) for v in values)[:count]
    found = float(closest_mean(np.array([sorted(values)], dtype=np.float64), count)[0])
    sums = {
        sum(some) for some in itertools.combinations(values, count) if sorted(abs(v - center) for v in some) == away
    }
    assert any(found == pytest.approx(total / count) for total in sums)


@tried
@given(uploads(lambda f: 2 * f + 1), st.sampled_from([None, 0.5, 3.0]), st.integers(1, 4), st.booleans())
def test_centered_clipping(u: Uploads, tau: float | None, iterations: int, remembers: bool) -> None:
    start = u.x[:2].mean(0) if remembers else torch.zeros_like(u.x[0])
    done = run(
        rule("centered-clipping", tau=tau, iterations=iterations),
        u.x,
        u.f,
        memory={"center": start} if remembers else {},
    )
    v = start.tolist()
    for _ in range(iterations):
        lengths = [distance(a, v) for a in u.rows]
        radius = statistics.median(lengths) if tau is None else tau
        factors = [min(1.0, radius / t) for t in lengths]
        steps = [[r * (s - t) for s, t in zip(a, v, strict=True)] for r, a in zip(factors, u.rows, strict=True)]
        v = [t + s for t, s in zip(v, average(steps), strict=True)]
    assert_near(done.vector, v)
    assert torch.equal(done.memory["center"], done.vector)
    assert done.used is not None
    torch.testing.assert_close(done.used @ u.x + (1 - done.used.sum()) * start, done.vector)


@tried
@given(uploads(lambda f: 2 * f + 1), st.sampled_from([None, 0.5, 3.0]))
def test_norm_bounding(u: Uploads, bound: float | None) -> None:
    lengths = [norm(a) for a in u.rows]
    most = statistics.median(lengths) if bound is None else bound
    clipped = [[min(1.0, most / r) * t for t in a] for r, a in zip(lengths, u.rows, strict=True)]
    assert_near(run(rule("norm-bounding", bound=bound), u.x, u.f).vector, average(clipped))


@tried
@given(uploads(lambda f: 2 * f + 1), st.booleans())
def test_fltrust(u: Uploads, trusted: bool) -> None:
    own = (u.x[0] + u.x[1]) if trusted else u.x[0] * 0
    done = run(rule("fltrust"), u.x, u.f, reference=lambda: own)
    g0, total, trust_sum = own.tolist(), [0.0] * len(own), 0.0
    for a in u.rows:
        scale = norm(a) * norm(g0)
        trust = max(0.0, sum(s * t for s, t in zip(a, g0, strict=True)) / scale) if scale else 0.0
        total = [s + trust * norm(g0) / norm(a) * t for s, t in zip(total, a, strict=True)]
        trust_sum += trust
    assert_near(done.vector, [t / trust_sum for t in total] if trust_sum else total)
    assert done.used is not None
    torch.testing.assert_close(done.used @ u.x, done.vector)


def test_fltrust_ignores_what_points_away_and_steps_nowhere_when_all_do() -> None:
    x = torch.tensor([[1.0, 0.0], [-5.0, 0.1], [0.0, 0.0]])
    done = run(rule("fltrust"), x, 1, reference=lambda: torch.tensor([2.0, 0.0]))
    torch.testing.assert_close(done.vector, torch.tensor([2.0, 0.0]))
    torch.testing.assert_close(done.used, torch.tensor([2.0, 0.0, 0.0]))
    away = run(rule("fltrust"), x[1:], 1, reference=lambda: torch.tensor([2.0, 0.0]))
    assert torch.equal(away.vector, torch.zeros(2))


@tried
@given(uploads(lambda f: 2 * f + 1), st.integers(1, 3), st.sampled_from([3, 10_000]), st.sampled_from([0.5, 1.0]))
def test_dnc(u: Uploads, iterations: int, coordinates: int, c: float) -> None:
    made = rule("dnc", iterations=iterations, coordinates=coordinates, c=c)
    done, n, d = run(made, u.x, u.f, seed=5), len(u.x), u.x.shape[1]
    times = [0] * n
    for i in range(iterations):
        order = torch.randperm(d, generator=Rng(5, ("coordinates", i)).torch())
        z = u.x[:, order[:coordinates]].numpy()
        z = z - z.mean(axis=0)
        scores = (z @ np.linalg.svd(z)[2][0]) ** 2
        for row in sorted(range(n), key=lambda r: scores[r])[: n - math.ceil(c * u.f)]:
            times[row] += 1
    good = [r for r in range(n) if times[r] == iterations] or [r for r in range(n) if times[r] == max(times)]
    assert done.used is not None
    assert [r for r in range(n) if done.used[r] > 0] == good
    assert_near(done.vector, average([u.rows[r] for r in good]))


def signguard(rows: Sequence[Row], drawn: Sequence[int], low: float, high: float) -> list[float]:
    """SignGuard with loops; the clusters are scikit-learn's, of rows in order, which decides where they lie as near."""
    lengths = [norm(a) for a in rows]
    typical = statistics.median(lengths)
    first = {i for i, r in enumerate(lengths) if low * typical <= r <= high * typical}
    signs = [
        [sum(holds(a[j]) for j in drawn) for a in rows]
        for holds in (lambda t: t > 0, lambda t: t == 0, lambda t: t < 0)
    ]
    every = [tuple(kind[i] / max(max(kind), 1) for kind in signs) for i in range(len(rows))]
    order = sorted(range(len(rows)), key=lambda i: every[i][::-1])
    features = np.array([every[i] for i in order])
    second = set(range(len(rows)))
    if (bandwidth := estimate_bandwidth(features, quantile=0.5)) > 1e-6:
        labels = list(MeanShift(bandwidth=bandwidth, bin_seeding=True, cluster_all=False).fit_predict(features))
        largest = max(sorted(set(labels) - {-1}), key=labels.count)
        second = {i for i, label in zip(order, labels, strict=True) if label == largest}
    chosen = sorted(first & second) or sorted(first)
    return average([[min(1.0, typical / lengths[i]) * t for t in rows[i]] for i in chosen])


@pytest.mark.filterwarnings("ignore:Binning data failed")
@tried
@given(uploads(lambda f: 2 * f + 1), st.sampled_from([0.2, 1.0]), st.sampled_from([(0.1, 3.0), (0.95, 2.0)]))
def test_signguard(u: Uploads, share: float, limits: tuple[float, float]) -> None:
    made = rule("signguard", share=share, low=limits[0], high=limits[1])
    d = u.x.shape[1]
    drawn = torch.randperm(d, generator=Rng(5, ("coordinates",)).torch())[: max(1, int(d * share))]
    assert_near(run(made, u.x, u.f, seed=5).vector, signguard(u.rows, drawn.tolist(), *limits))


class Spy(Aggregator):
    """The mean; remembers what it was given."""

    def __init__(self) -> None:
        super().__init__(NoOptions())
        self.x, self.call = torch.zeros(0), call(0)

    def __call__(self, x: Tensor, call: Call) -> Aggregate:
        self.x, self.call = x, call
        share = torch.arange(1.0, len(x) + 1).to(x)
        return Aggregate(share @ x, share, {"kept": x})


@tried
@given(uploads(lambda f: 2 * f + 1))
def test_nnm(u: Uploads) -> None:
    spy, memory = Spy(), {"kept": u.x}
    done = run(rule("nnm", spy), u.x, u.f, memory=memory)
    for i, a in enumerate(u.rows):
        nearest = sorted(range(len(u.x)), key=lambda j: distance(a, u.rows[j]))[: len(u.x) - u.f]
        assert i in nearest
        assert_near(spy.x[i], average([u.rows[j] for j in nearest]))
    assert (spy.call.f, spy.call.memory) == (u.f, memory)
    assert set(done.memory) == {"kept"}
    assert done.used is not None
    torch.testing.assert_close(done.used @ u.x, done.vector)


@tried
@given(st.integers(3, 15), st.integers(1, 5), st.integers(0, 1000))
def test_bucketing(n: int, s: int, seed: int) -> None:
    spy, x = Spy(), torch.eye(n, dtype=torch.float64)
    weights, memory = torch.arange(1.0, n + 1), {"kept": x}
    done = run(rule("bucketing", spy, s=s), x, 2, seed=seed, memory=memory, weights=weights)
    members = [[i for i in range(n) if spy.x[b, i] > 0] for b in range(len(spy.x))]
    assert sorted(i for bucket in members for i in bucket) == list(range(n))
    assert [len(bucket) for bucket in members] == [s] * (n // s) + ([n % s] if n % s else [])
    for b, bucket in enumerate(members):
        assert_near(spy.x[b, bucket], [1 / len(bucket)] * len(bucket))
        assert spy.call.weights[b] == sum(i + 1 for i in bucket)
    assert (spy.call.f, spy.call.memory) == (2, memory)
    assert done.used is not None
    torch.testing.assert_close(done.used @ x, done.vector)


@pytest.mark.parametrize("name", ["nnm", "bucketing"])
def test_wrappers_hand_on_the_reference_and_what_it_needs(name: str) -> None:
    made = rule(name, rule("fltrust", root=7))
    assert made.auxiliary == 7
    x = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
    own = torch.ones(4)
    torch.testing.assert_close(
        run(made, x, reference=lambda: own).vector.norm() <= own.norm() + 1e-5, torch.tensor(True)
    )
    assert torch.equal(run(made, x, reference=lambda: 0 * own).vector, 0 * own)
