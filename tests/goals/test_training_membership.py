"""Who is asked about when a released model is attacked, what the attacker holds, and that the judge is fair."""

from __future__ import annotations

from statistics import fmean
from typing import Any

import pytest
import torch
from helpers.membership_models import attacked, group, prepared
from torch import Tensor

from fedarena.contracts.final_model import BlackBox, WhiteBox
from fedarena.contracts.inference import Scores
from fedarena.contracts.view import View
from fedarena.core.rng import Rng
from fedarena.core.text.numbers import t_quantile
from fedarena.core.threat import EVERYONE, Threat
from fedarena.federation.population import halves
from fedarena.goals import training_membership as goal
from fedarena.goals.metrics.auc_interval import score_interval
from fedarena.goals.prepared import PreparedRecord
from fedarena.problem.problem import Problem, build


def cell(**settings: Any) -> PreparedRecord:
    (found,) = prepared(group(rounds=2, **settings))
    return found


def view(**settings: Any) -> View:
    found = cell(**settings).challenge
    assert found is not None
    assert found.view is not None
    return found.view


def places(x: Tensor, among: Tensor, scale: float) -> set[int]:
    """Which rows of stored data these inputs are; every one must be there."""
    equal = (x[:, None] == among[None].float() / scale).flatten(2).all(2)
    assert equal.any(1).all()
    return set(equal.double().argmax(1).tolist())


@pytest.mark.parametrize("partition", ["few", "iid", "dirichlet"])
def test_members_are_others_samples_and_strangers_nobody_s_class_by_class(partition: str) -> None:
    found = cell(partition=partition).challenge
    assert found is not None
    assert found.view is not None
    asked, inside, problem = found.view.candidates, found.answers, build(group(partition=partition).problem, 0)
    assert asked is not None
    classes = [asked.y[which].bincount(minlength=10).tolist() for which in (inside, ~inside)]
    assert classes[0] == classes[1]
    members = places(asked.x[inside], problem.x, problem.scale)
    assert members <= set(torch.cat(problem.shards[1:]).tolist())
    strangers = places(asked.x[~inside], problem.x_test, problem.scale)
    assert strangers <= set(halves(problem, 0)[1].tolist())
    assert len(strangers) == len(asked.y) // 2 > 50


def test_the_population_holds_no_candidate_and_a_client_its_own_shard_too() -> None:
    server, client = (view(party=p) for p in ("server", "client"))
    assert server.population is not None
    assert client.population is not None
    problem = build(group().problem, 0)
    mine, strangers = halves(problem, 0)
    assert not set(mine.tolist()) & set(strangers.tolist())
    torch.testing.assert_close(server.population.x, problem.x_test[mine].float() / problem.scale)
    extra = client.population.x[len(mine) :]
    assert places(extra, problem.x, problem.scale) == set(problem.shards[0].tolist())
    assert client.population.y[len(mine) :].tolist() == problem.y[problem.shards[0]].tolist()


def test_every_party_is_asked_the_same_of_its_own_model() -> None:
    views = [view(party=p) for p in EVERYONE]
    assert all(torch.equal(v.candidates.x, views[0].candidates.x) for v in views)  # type: ignore[union-attr]
    assert [v.reading for v in views] == ["deployed", "release", "release", "queries"]
    assert [type(v.model) for v in views] == [WhiteBox] * 3 + [BlackBox]


def test_an_attack_that_needs_no_samples_gets_none() -> None:
    assert view(statistic="loss").population is None


def test_no_more_than_the_most_are_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(goal, "MOST", 40)
    asked = view().candidates
    assert asked is not None
    assert 60 < len(asked.y) <= 80


def test_whose_samples_are_members() -> None:
    problem = build(group().problem, 0)
    others = torch.cat(problem.shards[1:]).sort().values
    for party in EVERYONE:
        assert torch.equal(goal.trained_on(problem, Threat(party, "paper")), others)
    alike = build(group(partition="copies").problem, 0)
    assert not len(goal.trained_on(alike, Threat("client", "paper")))
    assert torch.equal(goal.trained_on(alike, Threat("server", "paper")), alike.shards[0].sort().values)


def test_a_client_that_holds_everything_has_nobody_to_find() -> None:
    made = attacked(party="client", partition="copies", rounds=2)
    assert (made["status"], made["reason"]) == (
        "n/a",
        "no sample that was trained on is unknown to the curious client",
    )


def test_the_interval_is_the_hull_of_delong_s_and_the_score_interval() -> None:
    found, generator = cell().challenge, Rng(0).torch()
    assert found is not None
    inside = found.answers
    values = torch.randn(len(inside), generator=generator).double() + inside
    judged = goal.TrainingMembership().judge([Scores(values)], found)
    above = values[inside][:, None] > values[~inside][None]
    share = above.double()
    auc, m, n = float(share.mean()), len(share), share.shape[1]
    more = (auc**2 + (1 - auc) ** 2) * (1 / ((m + 2) * (m + 1)) + 1 / ((n + 2) * (n + 1)))
    spread = (share.mean(1).var() / m + share.mean(0).var() / n + more).sqrt()
    assert judged["auc"] == pytest.approx(auc)
    score = score_interval(auc, m, n)
    delong = auc + t_quantile(m + n - 1) * float(spread)
    assert judged["auc_high"] == pytest.approx(max(score[1], delong), abs=0.01 * float(spread))
    assert judged["auc_low"] <= score[0]


@pytest.mark.parametrize("statistic", ["loss", "lira"])
def test_samples_that_nobody_trained_on_are_told_from_nobody(statistic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The partition leaves samples out; asked about in the members' place, nothing is left to tell."""

    def nowhere(problem: Problem, threat: Threat) -> Tensor:
        left = torch.ones(len(problem.y), dtype=torch.bool)
        left[torch.cat(problem.shards)] = False
        return left.nonzero().flatten()[:150]

    def auc(seed: int) -> float:
        """Of a run short enough for eleven of them."""
        record = attacked(seed=seed, statistic=statistic, samples=20, rounds=80)
        return float(record["metrics"]["auc"])

    real = [auc(seed) for seed in range(3)]
    monkeypatch.setattr(goal, "trained_on", nowhere)
    null = [auc(seed) for seed in range(8)]
    assert fmean(real) > 0.6
    assert abs(fmean(null) - 0.5) < 0.04
