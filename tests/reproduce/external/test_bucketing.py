"""The bucketing paper's experiments: every run is the code's, and a small one gives a row."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from fedarena.problem.spec import usual_problem
from fedarena.reproduce.external import bucketing
from fedarena.reproduce.external.bucketing import BY_NAME, TABLE, played_as_in_the_code
from fedarena.reproduce.machine import Machine
from fedarena.runs.trial import prepare


def test_every_rule_meets_both_shards_with_and_without_buckets() -> None:
    plain = [one for one in BY_NAME.values() if not one.repeats]
    second = [one for one in plain if (one.attack, one.momentum) == ("mimic", 0.0)]
    assert len(second) == 5 * 2 * 2
    assert len(plain) == 20 + 2 * 2 * (4 + 5)
    assert {one.name for one in BY_NAME.values() if one.repeats} == {
        f"{one.name}, as in the code" for one in second if one.shards == "sorted"
    }


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


def test_a_run_as_in_the_code_repeats_batches_and_masks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small one: with batches and masks that repeat it is another run, and the record is that of an attacked one."""
    monkeypatch.setattr(bucketing, "SAMPLES", 8)
    given = {"dataset": "digits", "model": "cnn-bucketing", "clients": "5", "corrupted": "1"}
    training = {"rounds": "3", "batch_size": "4", "eval_every": "1"}
    whole = BY_NAME["sorted, CM, mimic, s = 0, β = 0"].group(Machine(), 0)
    spec = replace(whole, problem=usual_problem(given, {"training": training}))
    repeated = played_as_in_the_code(spec, lambda share, text: None)
    assert repeated["status"] == "ok", repeated["reason"]
    assert len(repeated["attacked"]["curve"]) == 3
    fresh = prepare(spec)[0].record
    assert repeated["attacked"]["curve"] != fresh["attacked"]["curve"]
