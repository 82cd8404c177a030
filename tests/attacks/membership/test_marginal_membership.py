"""Appendix D's check: what it sees of loss differences is the same for any data, and why halves are compared."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from helpers.membership_views import play, score
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ks_2samp
from torch import Tensor

from fedarena.attacks.membership.cards.marginal_membership import Options
from fedarena.attacks.membership.marginal_membership import MarginalMembership, ks_distance, unit
from fedarena.core.rng import Rng
from fedarena.core.threat import NotApplicable

SHAPE, SCALE = MarginalMembership(Options()), MarginalMembership(Options(scale=True))


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@given(seed=st.integers(0, 2**32), n=st.integers(1, 30), m=st.integers(1, 30), ties=st.booleans())
@settings(max_examples=50, deadline=None)
def test_the_distance_is_scipy_s(seed: int, n: int, m: int, ties: bool) -> None:
    generator = Rng(seed).torch()
    a, b = torch.randn(n, generator=generator), 0.5 + torch.randn(m, generator=generator)
    if ties:
        a, b = a.round(), b.round()
    assert ks_distance(a, b) == pytest.approx(ks_2samp(a.double().numpy(), b.double().numpy()).statistic, abs=1e-12)


def test_loss_differences_show_nothing_once_the_scale_is_gone() -> None:
    assert 0.44 < score(SHAPE, *play(2, 200, directions=100))["auc"] < 0.56


class SamePositions(MarginalMembership):
    """The check without its halves: both samples share the perturbations."""

    def alike(self, a: Tensor, target: Tensor, rng: Rng) -> float:
        return -ks_distance(unit(a), unit(target))


def test_at_the_same_perturbations_the_joint_shows_through() -> None:
    assert score(SamePositions(Options()), *play(2, 200, directions=100))["auc_low"] > 0.56


def test_the_scale_is_an_option_that_counts() -> None:
    view, members = play(1, 40, directions=400)
    with_scale, without = score(SCALE, view, members), score(SHAPE, view, members)
    assert with_scale["auc_low"] > 0.5
    assert without["auc_low"] < 0.5 < without["auc_high"]


def test_gradients_of_one_sample_have_its_shape() -> None:
    assert score(SHAPE, *play(1, 30))["auc_low"] > 0.6


def test_order_does_not_count() -> None:
    """A target whose numbers are shuffled among themselves within each half scores the same."""
    a, target = torch.randn(20, generator=Rng(0).torch()), torch.randn(20, generator=Rng(1).torch())
    order = torch.randperm(20, generator=Rng(2).torch())
    theirs = order[10:]
    turned = target.clone()
    turned[theirs] = target[theirs.flip(0)]
    assert SHAPE.alike(a, turned, Rng(2)) == SHAPE.alike(a, target, Rng(2))
    assert SHAPE.alike(a, target.sort().values, Rng(2)) != SHAPE.alike(a, target, Rng(2))


def test_one_number_has_no_distribution() -> None:
    view, _ = play(2, 1, directions=1)
    found = SHAPE(view, Rng(0))
    assert isinstance(found, NotApplicable)
    assert "single number" in found.reason


def test_unit() -> None:
    assert unit(torch.tensor([3.0, -3.0])).tolist() == [1, -1]
    assert unit(torch.zeros(2)).tolist() == [0, 0]
    assert float(unit(torch.tensor([1.0, 7.0])).square().mean()) == pytest.approx(1)


def test_the_candidates_of_an_observation_are_compared_at_the_same_halves() -> None:
    view, _ = play(1, 1, directions=50)
    seen = view.observations[0]
    twice = replace(seen.candidates, x=seen.candidates.x[[0, 0]], y=seen.candidates.y[[0, 0]])
    (answer,) = SHAPE(replace(view, observations=(replace(seen, candidates=twice),)), Rng(0))  # type: ignore[misc]
    assert answer.values[0] == answer.values[1]
