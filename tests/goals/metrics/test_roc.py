"""ROC curves against scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import auc, roc_curve
from torch import Tensor

from fedarena.contracts.inference import PropertyScores, Scores
from fedarena.core.rng import Rng
from fedarena.goals.challenge import Challenge
from fedarena.goals.membership import BatchMembership
from fedarena.goals.metrics.roc import MOST, RATES, roc
from fedarena.goals.property import PropertyOfBatch
from fedarena.goals.training_membership import TrainingMembership


def played(seed: int, n: int, shift: float = 1.0, levels: int | None = None) -> tuple[Tensor, Tensor]:
    """Scores and truth; of `levels` different values, where said."""
    generator = Rng(seed).torch()
    members = torch.rand(n, generator=generator) < 0.4
    members[:2] = torch.tensor([True, False])
    values = torch.randn(n, generator=generator) + shift * members
    return ((levels * values).round() if levels else values), members


def sklearn_points(values: Tensor, members: Tensor) -> np.ndarray:
    false, true, _ = roc_curve(members, values.double(), drop_intermediate=False)
    return np.stack([false, true], 1)


@given(seed=st.integers(0, 2**32), n=st.integers(2, 60), levels=st.sampled_from([None, 1, 3]))
@settings(max_examples=50, deadline=None)
def test_few_candidates_keep_the_whole_curve(seed: int, n: int, levels: int | None) -> None:
    values, members = played(seed, n, levels=levels)
    kept, whole = np.array(roc([Scores(values)], [members])), sklearn_points(values, members)
    assert {tuple(p) for p in kept} <= {tuple(p) for p in whole}
    assert kept[0].tolist() == [0.0, 0.0]
    assert kept[-1].tolist() == [1.0, 1.0]
    if len(kept) < MOST:
        assert auc(kept[:, 0], kept[:, 1]) == pytest.approx(auc(whole[:, 0], whole[:, 1]), abs=1e-12)


@pytest.mark.parametrize("shift", [0.0, 1.0, 3.0])
def test_many_candidates_keep_exact_points_and_the_low_end(shift: float) -> None:
    values, members = played(1, 9000, shift)
    kept, whole = roc([Scores(values)], [members]), sklearn_points(values, members)
    assert 20 < len(kept) <= MOST <= 60
    assert kept == sorted(kept)
    exact = {tuple(p) for p in whole}
    assert all(tuple(p) in exact for p in kept)
    for rate in RATES:
        most = whole[whole[:, 0] <= rate + 1e-12][:, 1].max()
        assert max(y for x, y in kept if x <= rate + 1e-12) == most
    drawn = np.array(kept)
    assert auc(drawn[:, 0], drawn[:, 1]) == pytest.approx(auc(whole[:, 0], whole[:, 1]), abs=2e-3)


def test_observations_are_pooled_and_a_score_that_is_none_counts_as_least() -> None:
    scores = [Scores(torch.tensor([0.9, float("nan")])), Scores(torch.tensor([0.1, 0.5]))]
    members = [torch.tensor([True, False]), torch.tensor([False, True])]
    assert roc(scores, members) == [[0.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    assert roc(scores, [~m for m in members]) == [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]]


def test_equal_scores_say_nothing() -> None:
    assert roc([Scores(torch.zeros(6))], [torch.arange(6) < 3]) == [[0.0, 0.0], [1.0, 1.0]]


def test_members_alone_have_no_curve() -> None:
    with pytest.raises(ValueError, match="needs members and others"):
        roc([Scores(torch.ones(3))], [torch.ones(3, dtype=torch.bool)])


def test_every_goal_that_ranks_keeps_its_curve() -> None:
    values, members = played(2, 12)
    curve = {"roc": roc([Scores(values)], [members])}
    halves = [Scores(values[:6]), Scores(values[6:])]
    assert BatchMembership().series(halves, Challenge("", None, [members[:6], members[6:]])) == curve
    assert TrainingMembership().series([Scores(values)], Challenge("", None, members)) == curve
    assert PropertyOfBatch().series(PropertyScores(values, False, None), Challenge("", None, members)) == curve
