"""Guideline 4: runs differ in the norm alone, and BatchNorm is judged on batches of the clients' size, too."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from fedarena.problem.problem import build
from fedarena.reproduce.baffle import guideline4
from fedarena.reproduce.baffle.guideline4 import CASES, Norms, accuracy_in_batches, measure
from fedarena.reproduce.machine import Machine


def test_runs_differ_in_the_norm_alone() -> None:
    case = Norms("lenet-baffle", batch=4, k=100)
    group, batch = (case.group(norm, Machine(), 0) for norm in ("group", "batch"))
    assert group.problem.model_options != batch.problem.model_options
    assert replace(group, problem=replace(group.problem, model_options=batch.problem.model_options)) == batch
    assert (batch.problem.partition, batch.problem.schedule.batch_size) == ("few", 4)
    assert (batch.problem.schedule.rounds, batch.problem.schedule.local_epochs) == (20, 1)


@pytest.mark.parametrize("norm", ["group", "batch"])
def test_the_accuracy_in_batches_is_that_of_each_batch_by_itself(norm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guideline4, "SAMPLES", 32)
    spec = Norms("lenet-baffle", batch=4, k=None, data="digits").group(norm, Machine(), 0)
    problem = build(spec.problem, 0, None, "cpu")
    params = {name: p + 0.1 for name, p in problem.init.items()}
    right = 0
    for i in range(0, 356, 4):  # 359 test images
        x, y = problem.x_test[i : i + 4].float() / problem.scale, problem.y_test[i : i + 4]
        out = torch.func.functional_call(problem.task.model, params, (x,))
        right += int((out.argmax(1) == y).sum())
    assert accuracy_in_batches(problem, params, 4) == pytest.approx(right / 356)
    together, alone = accuracy_in_batches(problem, problem.init, 359), accuracy_in_batches(problem, problem.init, 1)
    assert (together == alone) == (norm == "group")


def test_a_row_has_every_norm_and_what_group_norm_is_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guideline4, "ROUNDS", 1)
    monkeypatch.setattr(guideline4, "SAMPLES", 32)
    (row,) = measure(Norms("lenet-baffle", batch=4, k=100, data="digits"), Machine(), 0, lambda share, text: None)
    assert set(guideline4.MEASURED) <= set(row)
    assert row["group_ahead"] == row["group"] - row["batch_as_trained"]
    assert row["group_ahead_1000"] == row["group"] - row["batch"]
    assert len({row["none"], row["group"], row["batch"]}) == 3


def test_the_wide_network_has_a_norm_in_every_row() -> None:
    assert all("none" not in case.norms for case in CASES if case.model == "wrn-10-2")
    assert all(one.within == (0.0, 1.0) for one in guideline4.TABLE.published)
