"""The dumbbell of ten and ten nodes: every run is the code's, and accuracies are of the right nodes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from fedarena.core.tensors import row
from fedarena.problem.problem import build
from fedarena.problem.spec import usual_problem
from fedarena.reproduce.external import dumbbell
from fedarena.reproduce.external.dumbbell import (
    AS_IN_THE_CODE,
    BY_NAME,
    MEASURED,
    MODELS,
    PAPER,
    TABLE,
    Experiment,
    accuracies,
)
from fedarena.reproduce.machine import Machine


def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Digits and a narrow network in place of MNIST."""
    given = {"dataset": "digits", "model": "mlp", "clients": "4", "assumed_corrupted": "1"}
    whole = Experiment.problem.fget  # type: ignore[attr-defined]

    def problem(self: Experiment) -> Any:
        own, other = usual_problem(given, {"model": {"widths": "8"}}), whole(self)
        options = replace(other.partition_options, samples=40)
        return replace(own, partition=other.partition, partition_options=options, schedule=other.schedule)

    monkeypatch.setattr(Experiment, "problem", property(problem))


def test_every_mixing_meets_both_shards_at_both_lengths() -> None:
    assert len(BY_NAME) == 2 * 4 + 2
    assert {(e.shards, e.mixing, after) for e in BY_NAME.values() for after in (300, 900)} == set(PAPER)
    assert len(TABLE.published) == 3 * 2 * len(BY_NAME)
    assert {cause.row for p in TABLE.published for cause in p.causes} == {e.name for e in AS_IN_THE_CODE}
    assert {p.column for p in TABLE.published} == set(MODELS)


@pytest.mark.parametrize("name", BY_NAME)
def test_every_run_is_as_in_the_code(name: str) -> None:
    experiment = BY_NAME[name]
    problem, schedule = experiment.problem, experiment.problem.schedule
    assert (schedule.rounds, schedule.batch_size, schedule.lr) == (900, 32, 0.01)
    assert (schedule.client_momentum, schedule.momentum, schedule.fresh_share) == (True, 0.9, 1.0)
    assert (problem.clients, problem.corrupted, problem.assumed_corrupted_or_default) == (20, 0, 1)
    options: Any = problem.partition_options
    assert options.samples == 30 * 32  # what the code's loader gives before it begins anew
    protocol: Any = experiment.defense.options
    assert protocol.graph == "dumbbell"
    assert protocol.clip == (1.0 if experiment.mixing.startswith("SCClip") else None)
    rule: Any = experiment.defense.rest[0].options if experiment.defense.rest else None
    if experiment.mixing == "GM":
        assert (rule.iterations, rule.eps) == (8, 0.1)


@pytest.mark.parametrize("mixing", dumbbell.MIXING)
def test_evaluations_are_of_one_run(mixing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    small(monkeypatch)
    monkeypatch.setattr(dumbbell, "ROUNDS", 60)
    monkeypatch.setattr(dumbbell, "EVERY", 30)
    first, last = dumbbell.measure(Experiment("cliques", mixing), Machine(), 0, lambda share, text: None)
    monkeypatch.setattr(dumbbell, "ROUNDS", 30)
    (alone,) = dumbbell.measure(Experiment("cliques", mixing), Machine(), 0, lambda share, text: None)
    assert [first["rounds"], last["rounds"]] == [30, 60]
    assert set(MEASURED) < set(first)
    for column in set(first) - {"cpu_seconds"}:
        assert first[column] == alone[column]
    assert first["all nodes"] != last["all nodes"]
    assert all(0 < row[column] < 1 for row in (first, last) for column in MODELS)


def test_accuracies_are_of_the_mean_of_all_and_of_each_half() -> None:
    """Weights that answer one class: two of four nodes say 2, the other two 7, and all of them 5 a bit less."""
    problem = build(usual_problem({"dataset": "digits", "model": "mlp", "clients": "4"}, {}), 0, None, "cpu")
    models = {name: torch.zeros(4, *t.shape) for name, t in problem.init.items()}
    bias = next(t for t in models.values() if t.shape == (4, 10))
    bias[:2, 2], bias[2:, 7], bias[:, 5] = 3.0, 3.0, 2.0
    share = problem.y_test.bincount() / len(problem.y_test)
    nodes = [row(models, i) for i in range(4)]
    assert accuracies(problem, nodes) == pytest.approx([float(share[k]) for k in (5, 2, 7)])
