"""Claim 6: the best rate is that of the means, every sweep varies the rate alone, and the logs say 0.2."""

from __future__ import annotations

import pytest

from fedarena.reproduce.machine import Machine
from fedarena.reproduce.two_stage import claim6, claim_runs
from fedarena.reproduce.two_stage.claim6 import ALONE, FLIPPED, UNSCALED, Sweep, judged, published
from fedarena.reproduce.two_stage.common import Experiment, group


def test_the_best_rate_is_that_of_the_largest_mean() -> None:
    found: dict[str, float | None] = dict.fromkeys(claim6.COLUMNS, 0.5) | {"0.2": 0.75, "0.4": 0.875}
    assert judged(found) == {"best_rate": 0.4, "lost_at_0.2": 0.125}
    assert judged(found | {"0.2": 0.9}) == {"best_rate": 0.2, "lost_at_0.2": 0.0}
    assert judged(found | {"0.2": 0.875})["best_rate"] == 0.2  # the lowest of equal ones
    assert judged(found | {"1": None}) == {"best_rate": None, "lost_at_0.2": None}


def test_a_sweep_varies_the_rate_alone() -> None:
    slow, fast = (group(Sweep("usps", 0.5, FLIPPED).at(rate), Machine(), 0) for rate in (0.02, 1.0))
    assert (slow.problem.schedule.lr, fast.problem.schedule.lr) == (0.02, 1.0)
    assert slow.defense == fast.defense
    assert slow.attack == fast.attack


def test_only_the_control_leaves_the_rate_unscaled() -> None:
    by_workers = {who: group(Sweep("usps", 0.5, who).at(0.2), Machine(), 0) for who in (FLIPPED, ALONE, UNSCALED)}
    scaled = {who: getattr(spec.defense.options, "base_epsilon", None) for who, spec in by_workers.items()}
    assert scaled == {FLIPPED: 2.0, ALONE: 2.0, UNSCALED: None}
    assert [spec.problem.corrupted for spec in by_workers.values()] == [15, 0, 15]


def test_only_the_papers_own_sweeps_are_compared_and_only_0_2_agrees() -> None:
    rate, lost = published(Sweep("usps", 1.0, FLIPPED))
    assert rate.within == (pytest.approx(0.2), pytest.approx(0.2))
    assert rate.within[0] <= (0.2 + 0.2 + 0.2) / 3 <= rate.within[1]
    assert lost.paper == 0.0
    assert not published(Sweep("usps", 1.0, ALONE))
    assert not published(Sweep("usps", 1.0, UNSCALED))


def test_the_logs_have_every_rate_at_every_epsilon_and_0_2_is_their_best() -> None:
    logged = claim6.logged()
    assert set(logged) == set(claim6.EPSILONS)
    for by_rate in logged.values():
        assert sorted(by_rate) == list(claim6.RATES)
        assert max(by_rate, key=lambda rate: by_rate[rate]) == 0.2
    assert "0.2 at ε = 0.125" in claim6.TABLE.notes[0]


def test_means_are_of_three_seeds_that_no_other_part_has(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []

    def accuracy(experiment: Experiment, machine: Machine, seed: int, progress: object) -> float | None:
        asked.append((experiment.title, seed))
        return None if experiment.title == "fails" and seed == 4 else 0.25 * seed

    monkeypatch.setattr(claim_runs, "_accuracy", accuracy)
    experiments = {"0.2": Experiment(data="usps", title="works", paper=None)}
    experiments["0.4"] = Experiment(data="usps", title="fails", paper=None)
    found = claim_runs.mean_accuracies(experiments, Machine(), 1, lambda share, text: None)
    assert found == {"0.2": 1.0, "0.4": None}
    assert asked == [(title, seed) for title in ("works", "fails") for seed in (3, 4, 5)]
