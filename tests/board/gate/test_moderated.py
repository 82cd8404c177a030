"""Moderated variances: against literal slow sums, and against a law that is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from fedarena.board.gate.contrast import Contrast
from fedarena.board.gate.judge import CELLS_PRIOR, ENOUGH, FLOOR, judge
from fedarena.board.gate.moderated import NOTHING, Prior, fit, inverse_trigamma, shrunk
from fedarena.core.rng import Rng


@given(st.floats(1e-3, 1e3))
def test_inverse_trigamma_is_the_inverse(x: float) -> None:
    assert inverse_trigamma(float(special.polygamma(1, x))) == pytest.approx(x, rel=1e-6)


def test_the_prior_matches_mean_and_variance_of_the_logarithms() -> None:
    variances, degrees = [0.01, 0.0004, 0.3, 0.02, 0.00001], [2, 2, 4, 2, 4]
    prior = fit(variances, degrees)
    # What the model says of log s²: its mean and its variance, written out.
    half0 = prior.degrees / 2
    means = [
        math.log(prior.variance) + special.digamma(d / 2) - special.digamma(half0) + math.log(half0 / (d / 2))
        for d in degrees
    ]
    rest = [math.log(v) - m for v, m in zip(variances, means, strict=True)]
    assert sum(rest) == pytest.approx(0, abs=1e-9)
    expected = sum(special.polygamma(1, d / 2) for d in degrees) / 5 + special.polygamma(1, half0)
    assert sum(r * r for r in rest) / 4 == pytest.approx(expected)


def test_a_known_prior_is_found() -> None:
    g = Rng(0).numpy()
    true = 0.02 * 6 / g.chisquare(6, 20000)
    prior = fit((true * g.chisquare(2, 20000) / 2).tolist(), [2] * 20000)
    assert prior.degrees == pytest.approx(6, rel=0.15)
    assert prior.variance == pytest.approx(0.02, rel=0.05)


def test_equal_noise_gives_a_prior_with_infinite_degrees() -> None:
    prior = fit([0.01] * 20, [2] * 20)
    assert math.isinf(prior.degrees)
    assert shrunk(0.0001, 2, prior) == (prior.variance, math.inf)


def test_too_few_variances_give_no_prior() -> None:
    assert fit([0.01, 0.02], [2, 2]) == NOTHING
    assert shrunk(0.01, 2, NOTHING) == (0.01, 2)


def test_a_prior_never_lowers_a_variance() -> None:
    prior = Prior(4.0, 0.01)
    assert shrunk(0.001, 2, prior) == pytest.approx(((4 * 0.01 + 2 * 0.001) / 6, 6.0))
    assert shrunk(0.5, 2, prior) == (0.5, 6.0)


def test_p_and_interval_equal_a_literal_computation() -> None:
    g = Rng(1).numpy()
    base = g.uniform(0.3, 0.7, (12, 3))
    new = base + g.normal(0, 0.05, (12, 3))
    new[0] = base[0] + np.array([0.3, 0.25, 0.28])
    contrasts = [
        Contrast(
            i,
            kind="labels",
            axis="privacy",
            seeds=(0, 1, 2),
            base=tuple(base[i].tolist()),
            new=tuple(new[i].tolist()),
            effect=0.1,
        )
        for i in range(12)
    ]
    assert len(contrasts) >= ENOUGH
    variances = [max(np.var(new[i] - base[i], ddof=1), (FLOOR * 0.1) ** 2) for i in range(12)]
    prior = fit(variances, [2] * 12)
    d0 = min(prior.degrees, CELLS_PRIOR)
    ps, halves = [], []
    for i in range(12):
        s2 = max(variances[i], (d0 * prior.variance + 2 * variances[i]) / (d0 + 2))
        error = math.sqrt(s2 / 3)
        p = 2 * stats.t.sf(abs(np.mean(new[i] - base[i])) / error, d0 + 2)
        gap = max(min(new[i]) - max(base[i]), min(base[i]) - max(new[i]), 0)
        if gap > 0:
            wide = sum(np.ptp(row) >= gap for row in [*base, *new])
            share = (wide + (wide + 0.5) / 25) / 25  # the kind is the whole board here: 24 sides
            p = max(p, share / 24)
        ps.append(p)
        halves.append(stats.t.ppf(0.975, d0 + 2) * error)
    found = judge(contrasts, 0.05)
    order = np.argsort(ps)
    running = 0.0
    for rank, i in enumerate(order):
        running = max(running, min(1.0, (12 - rank) * ps[i]))
        assert found[i].p == pytest.approx(running)
        assert found[i].half == pytest.approx(halves[i])
    assert [i for i, v in enumerate(found) if v.finding] == [0]
    assert found[0].outcome == "gain"
