"""The bucketing paper's experiments: every run is the code's, and a small one gives a row."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fedarena.reproduce.external import bucketing
from fedarena.reproduce.external.bucketing import BY_NAME, TABLE
from fedarena.reproduce.machine import Machine


def test_every_rule_meets_both_shards_with_and_without_buckets() -> None:
    second = [one for one in BY_NAME.values() if (one.attack, one.momentum) == ("mimic", 0.0)]
    assert len(second) == 5 * 2 * 2
    assert len(BY_NAME) == 20 + 2 * 2 * (4 + 5)


@pytest.mark.parametrize("name", BY_NAME)
def test_every_run_is_as_in_the_code(name: str) -> None:
    experiment = BY_NAME[name]
    spec = experiment.group(Machine(), 0)
    schedule, problem = spec.problem.schedule, spec.problem
    assert (schedule.rounds, schedule.batch_size, schedule.lr, schedule.eval_every) == (600, 32, 0.01, 30)
    assert schedule.client_momentum is (experiment.momentum > 0)
    assert (schedule.momentum_form, schedule.fresh_share) == ("sum", 1.0)
    assert (problem.clients, problem.corrupted, problem.assumed_corrupted_or_default) == (25, 5, 5)
    assert spec.defense.label.startswith("bucketing+") is (experiment.s == 2)
    options: Any = spec.defense.rest[-1].options
    if experiment.rule == "RFA":
        assert (options.iterations, options.eps) == (8, 0.1)
    if experiment.rule == "CClip":
        assert (options.iterations, options.tau) == (3, 10.0)
    (threat,) = spec.threats
    assert (threat.knows == "omniscient") is (experiment.attack in ("mimic", "IPM", "ALIE"))


def test_accuracies_are_means_of_the_last_five_evaluations(monkeypatch: pytest.MonkeyPatch) -> None:
    curve = [[0, 0.1, None], *([30 * i, i / 100, None] for i in range(1, 21))]
    record = {"status": "ok", "attacked": {"curve": curve}, "cost": {"seconds": 1.0}}
    monkeypatch.setattr(bucketing, "prepare", lambda spec, progress: [SimpleNamespace(record=record)])
    (row,) = TABLE.rows("sorted, Krum, mimic, s = 0, β = 0", Machine(), 0, lambda share, text: None)
    assert row["accuracy"] == pytest.approx(0.18)
    assert (row["last"], row["lowest"], row["best"]) == (0.20, 0.16, 0.20)
