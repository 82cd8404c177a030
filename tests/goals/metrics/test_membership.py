"""The judge of membership against slow, independent formulas."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.metrics import roc_auc_score, roc_curve
from torch import Tensor

from fedarena.contracts.inference import Scores
from fedarena.core.rng import Rng
from fedarena.goals.metrics.membership import RATES, false_positives, membership_metrics


def judged(values: list[Tensor], members: list[Tensor]) -> dict[str, float]:
    return membership_metrics([Scores(v) for v in values], members)


def played(seed: int, groups: int = 25, half: int = 4, shift: float = 0.0, ties: bool = False) -> tuple[list, list]:
    """Scores of members lie `shift` higher; each group has a level of its own, as batches have."""
    generator = Rng(seed).torch()
    members = [torch.arange(2 * half) < half for _ in range(groups)]
    values = []
    for truth in members:
        level = 0.5 * torch.randn((), generator=generator)
        v = torch.randn(2 * half, generator=generator) + level + shift * truth
        values.append((2 * v).round() if ties else v)
    return values, members


@given(seed=st.integers(0, 2**32), ties=st.booleans())
@settings(max_examples=25, deadline=None)
def test_auc_counts_pairs_over_all_observations(seed: int, ties: bool) -> None:
    values, members = played(seed, groups=6, shift=0.7, ties=ties)
    v, m = torch.cat(values), torch.cat(members)
    slow = sum(float(p > q) + 0.5 * float(p == q) for p in v[m] for q in v[~m]) / (int(m.sum()) * int((~m).sum()))
    metrics = judged(values, members)
    assert metrics["auc"] == pytest.approx(slow, abs=1e-12)
    assert metrics["auc"] == pytest.approx(roc_auc_score(m, v), abs=1e-12)
    assert metrics["advantage"] == pytest.approx(2 * slow - 1, abs=1e-12)
    assert metrics["candidates"] == 48
    assert metrics["auc_low"] <= metrics["auc"] <= metrics["auc_high"]


def test_the_order_of_observations_and_candidates_does_not_matter() -> None:
    values, members = played(3, shift=0.5)
    order = torch.randperm(8, generator=Rng(0).torch())
    turned = judged([v[order] for v in values[::-1]], [m[order] for m in members[::-1]])
    assert turned == pytest.approx(judged(values, members))


def test_the_interval_is_that_of_a_bootstrap_over_observations() -> None:
    values, members = played(5, groups=60, shift=0.8)
    generator, found = Rng(0).torch(), []
    for _ in range(1000):
        drawn = torch.randint(60, (60,), generator=generator).tolist()
        v, m = torch.cat([values[i] for i in drawn]), torch.cat([members[i] for i in drawn])
        found.append(float((v[m][:, None] > v[~m]).double().mean()))  # scikit-learn's AUC, in a hundredth of the time
    spread = float(torch.tensor(found).std())
    metrics = judged(values, members)
    assert (metrics["auc_high"] - metrics["auc_low"]) / 2 == pytest.approx(2.0 * spread, rel=0.1)  # t(59) is 2.00


def test_the_interval_is_delongs_with_two_candidates_more_of_each_kind() -> None:
    generator = Rng(1).torch()
    truth = torch.arange(400) < 200
    v = torch.randn(400, generator=generator) + 0.8 * truth
    metrics = judged(list(v.split(1)), list(truth.split(1)))
    inside = [float((p > v[~truth]).double().mean()) for p in v[truth]]
    outside = [float((v[truth] > q).double().mean()) for q in v[~truth]]
    delong = float(torch.tensor(inside).var()) / 200 + float(torch.tensor(outside).var()) / 200
    more = 2 * (metrics["auc"] ** 2 + (1 - metrics["auc"]) ** 2) / (202 * 201)
    assert metrics["auc_high"] - metrics["auc"] == pytest.approx(1.966 * math.sqrt(delong + more), rel=0.01)


@pytest.mark.parametrize("share", [0.02, 0.05])
def test_intervals_hold_where_few_members_go_wrong(share: float) -> None:
    held = 0
    for seed in range(300):
        generator = Rng(seed).child("missed").torch()
        inside = torch.where(torch.rand(200, generator=generator) < share, -9.0, 9.0)
        scores = torch.cat([inside, torch.zeros(200)]) + torch.randn(400, generator=generator)
        metrics = membership_metrics([Scores(scores)], [torch.arange(400) < 200], grouped=False)
        held += metrics["auc_low"] <= 1 - share <= metrics["auc_high"]
    assert held >= 0.93 * 300


@pytest.mark.parametrize("shift", [0.0, 0.8])
def test_nineteen_in_twenty_intervals_hold_the_truth(shift: float) -> None:
    # Two scores of different groups differ by N(shift, 2 + 2/4), and nearly all pairs are of different groups.
    truth = 0.5 * (1 + math.erf(shift / math.sqrt(2.5) / math.sqrt(2)))
    intervals = [judged(*played(seed, shift=shift)) for seed in range(300)]
    held = sum(m["auc_low"] <= truth <= m["auc_high"] for m in intervals) / 300
    assert 0.90 < held < 0.98


def test_certainty_and_its_opposite() -> None:
    members = [torch.tensor([True, False]), torch.tensor([False, True])]
    right = judged([torch.tensor([2.0, 1.0]), torch.tensor([0.0, 3.0])], members)
    assert (right["auc"], right["advantage"]) == (1, 1)
    wrong = judged([torch.tensor([1.0, 2.0]), torch.tensor([3.0, 0.0])], members)
    assert (wrong["auc"], wrong["advantage"]) == (0, -1)
    assert judged([torch.zeros(2), torch.zeros(2)], members)["auc"] == 0.5


def test_nan_is_the_least_likely() -> None:
    members = [torch.tensor([True, True, False])]
    assert judged([torch.tensor([math.nan, 5.0, 1.0])], members)["auc"] == 0.5
    assert judged([torch.tensor([math.inf, 5.0, math.nan])], members)["auc"] == 1


def test_rates_are_given_where_there_are_outsiders_enough() -> None:
    for outsiders, expected in ((99, set()), (100, {0.01}), (1000, {0.01, 0.001})):
        generator = Rng(outsiders).torch()
        truth = torch.arange(outsiders + 50) < 50
        v = torch.randn(len(truth), generator=generator) + 2.0 * truth
        metrics = judged([v], [truth])
        found = {rate for rate in (0.01, 0.001) if f"tpr_at_{100 * rate:g}_percent_fpr" in metrics}
        assert found == expected
        fpr, tpr, _ = roc_curve(truth, v, drop_intermediate=False)
        for rate in expected:
            assert metrics[f"tpr_at_{100 * rate:g}_percent_fpr"] == pytest.approx(tpr[fpr <= rate].max())


RATE = "tpr_at_1_percent_fpr"


@pytest.mark.parametrize(("outsiders", "found"), [(100, 0.5), (600, 0.05), (600, 0.5), (600, 0.97)])
def test_the_interval_of_members_found_allows_for_the_threshold(outsiders: int, found: float) -> None:
    shift, held = norm.ppf(0.99) + norm.ppf(found), 0
    truth = torch.arange(outsiders + 200) < 200
    for seed in range(150):
        v = torch.randn(len(truth), generator=Rng(seed).torch()) + shift * truth
        metrics = membership_metrics([Scores(v)], [truth], grouped=False)
        assert metrics[f"{RATE}_low"] <= metrics[RATE] <= metrics[f"{RATE}_high"]
        held += metrics[f"{RATE}_low"] <= found <= metrics[f"{RATE}_high"]
    assert held / 150 >= 0.93


@pytest.mark.parametrize(("outsiders", "known"), [(436, False), (437, True)])
def test_few_outsiders_do_not_bound_the_threshold(outsiders: int, known: bool) -> None:
    truth = torch.arange(outsiders + 50) < 50
    metrics = membership_metrics([Scores(truth.double())], [truth], grouped=False)
    assert metrics[RATE] == metrics[f"{RATE}_high"] == 1
    assert (metrics[f"{RATE}_low"] > 0.9) == known
    assert (metrics[f"{RATE}_low"] == 0) == (not known)


def test_rates_of_several_readings_have_the_interval_that_holds_for_all() -> None:
    truth = torch.arange(1700) < 200
    v = torch.randn(1700, generator=Rng(4).torch()) + 2.0 * truth
    metrics = membership_metrics([Scores(v)], [truth], readings=3)
    for name in ("auc", *RATES):
        assert metrics[f"{name}_low_together"] <= metrics[f"{name}_low"] <= metrics[name]
        assert metrics[name] <= metrics[f"{name}_high"] <= metrics[f"{name}_high_together"]


def test_a_rate_is_so_many_outsiders() -> None:
    assert [false_positives(0.01, n) for n in (99, 100, 144, 200, 1000)] == [0, 1, 1, 2, 10]


def test_the_interval_of_one_observation_counts_its_candidates() -> None:
    truth = torch.arange(40) < 20
    v = torch.randn(40, generator=Rng(2).torch()) + truth
    assert judged([v], [truth]) == membership_metrics([Scores(v)], [truth], grouped=False)
    alone = judged([torch.tensor([1.0, 0.0])], [torch.tensor([True, False])])
    assert (alone["auc"], alone["auc_high"]) == (1, 1)
    assert alone["auc_low"] < 0.5


def test_an_observation_without_candidates_counts_for_nothing() -> None:
    values, members = played(2, groups=3)
    metrics = judged([*values, torch.empty(0)], [*members, torch.empty(0, dtype=torch.bool)])
    assert metrics["auc"] == judged(values, members)["auc"]


def test_answers_that_do_not_fit() -> None:
    truth = torch.tensor([True, False])
    with pytest.raises(ValueError, match="1 of 2 observations"):
        judged([torch.zeros(2)], [truth, truth])
    with pytest.raises(ValueError, match="for 2 candidates"):
        judged([torch.zeros(3)], [truth])
    with pytest.raises(ValueError, match="no candidates"):
        judged([torch.empty(0)], [truth[:0]])
