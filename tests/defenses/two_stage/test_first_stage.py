"""The two tests of FirstAGG against scipy, and how often they reject what they should let pass."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from torch import Tensor

from fedarena.core.rng import Rng
from fedarena.defenses.two_stage.first_stage import MANY, FirstStage, critical, statistic

ANY = 1e12
"""Standard deviations that no row is away: the KS test alone."""


def normal(n, d, seed=0, dtype=torch.float32):
    return torch.randn(n, d, generator=Rng(seed).torch(), dtype=dtype)


def p_value(statistics: Tensor, d: int) -> Tensor:
    """P(D ≥ statistic) for d samples of the law that is tested, exactly (Simard & L'Ecuyer 2011)."""
    return torch.from_numpy(np.asarray(stats.kstwo.sf(statistics.double().numpy(), d)))


@settings(max_examples=40, deadline=None)
@given(
    d=st.integers(1, 3000),
    shift=st.floats(-0.3, 0.3),
    scale=st.floats(0.7, 1.4),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    seed=st.integers(0, 10_000),
)
def test_statistic_and_p_are_scipys(d, shift, scale, dtype, seed):
    z = normal(3, d, seed, dtype) * scale + shift
    found = statistic(z)
    truth = [stats.kstest(row.double().numpy(), "norm") for row in z]
    assert found.tolist() == pytest.approx([t.statistic for t in truth], abs=1e-6)
    exact = [stats.kstest(row.double().numpy(), "norm", method="exact").pvalue for row in z]
    assert p_value(found, d).tolist() == pytest.approx(exact, abs=1e-4 if dtype is torch.float32 else 1e-9)
    verdict = FirstStage(ANY).rejects(z, 1.0)
    for rejected, p in zip(verdict.tolist(), exact, strict=True):
        if abs(p - 0.05) > 1e-4:  # at the boundary itself single precision may round either way
            assert rejected == (p < 0.05)


def test_p_in_single_precision_at_the_papers_size():
    """d = 25,450: a rounding of D by 1e-7 moves p by about 2e-5."""
    z = normal(8, 25_450) * 1.003
    exact = [stats.kstest(row.double().numpy(), "norm", method="exact").pvalue for row in z]
    assert p_value(statistic(z), 25_450).tolist() == pytest.approx(exact, abs=3e-5)


@pytest.mark.parametrize("level", [0.01, 0.05])
@pytest.mark.parametrize("d", [1, 10, 25_450])
def test_critical_value_has_its_level(d, level):
    assert float(p_value(torch.tensor([critical(d, level)]).double(), d)) == pytest.approx(level, rel=1e-6)
    if d > 1000:
        asymptotic = {0.05: 1.3581, 0.01: 1.6276}[level]
        assert critical(d, level) * math.sqrt(d) == pytest.approx(asymptotic, rel=0.005)


def test_ties_and_constant_rows():
    for row in (torch.zeros(50), torch.tensor([1.0, 1.0, -2.0, 0.5, 0.5])):
        truth = stats.kstest(row.double().numpy(), "norm").statistic
        assert float(statistic(row[None])) == pytest.approx(truth, abs=1e-6)


def test_norm_test_has_its_interval():
    d = 20_000
    z = normal(1, d)
    for sds in (1.0, 3.0):
        for inside, outside, sign in ((0.99, 1.01, 1), (0.99, 1.01, -1)):
            for share, rejected in ((inside, False), (outside, True)):
                target = d + sign * share * sds * math.sqrt(2 * d)
                row = z * (target / z.square().sum()).sqrt()
                assert bool(FirstStage(sds, 1e-300).rejects(row, 1.0)) is rejected


def test_noise_is_rejected_as_often_as_the_levels_say():
    """4,000 rows of pure noise: 5 % by KS, 0.27 % by norm; five Monte-Carlo standard errors."""
    n, z = 4000, normal(4000, 2000, seed=3)
    for stage, share in ((FirstStage(ANY, 0.05), 0.05), (FirstStage(3.0, 1e-300), 0.0027), (FirstStage(ANY, 0.2), 0.2)):
        rate = float(stage.rejects(z, 1.0).double().mean())
        assert abs(rate - share) < 5 * math.sqrt(share * (1 - share) / n)
    both = float(FirstStage().rejects(z, 1.0).double().mean())
    assert both > float(FirstStage(ANY, 0.05).rejects(z, 1.0).double().mean()) - 1e-12


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_rejected(bad):
    z = normal(2, 500)
    passes = not bool(FirstStage(level=1e-6).rejects(z, 1.0)[0])
    z[1, 7] = bad
    assert passes
    assert FirstStage(level=1e-6).rejects(z, 1.0).tolist() == [False, True]


def test_the_rows_are_left_as_they_were():
    z = normal(2, 100)
    before = z.clone()
    FirstStage().rejects(z, 1.0)
    assert torch.equal(z, before)


def test_rows_are_judged_by_themselves_and_in_units_of_their_noise():
    z = normal(11, 300) * torch.linspace(0.8, 1.2, 11)[:, None]
    alone = [bool(FirstStage().rejects(row[None], 1.0)) for row in z]
    assert FirstStage().rejects(z, 1.0).tolist() == alone
    assert 0 < sum(alone) < 11
    assert FirstStage().rejects(z * 7.0, 7.0).tolist() == alone


def test_equal_rows_among_many_have_one_verdict_each():
    """Colluders may send the same: such rows are tested once, and come out as they do alone."""
    x = normal(MANY + 40, 300)
    x[20:MANY] = x[20]
    x[MANY + 5 : MANY + 9] = 3.0
    x[-4:] = x[-1]
    stage = FirstStage(level=0.3)
    found = stage.rejects(x, 1.0)
    assert found.tolist() == [bool(stage.rejects(row[None], 1.0)) for row in x]
    assert 0 < int(found.sum()) < len(x)
