"""Compute: all candidates do the work that they are timed for, and operations are counted in full."""

from __future__ import annotations

import pytest
import torch

from fedarena.reproduce.baffle import compute
from fedarena.reproduce.baffle.compute import Work, candidates, measure, operations
from fedarena.reproduce.baffle.table4 import round_of
from fedarena.reproduce.machine import Machine

LENET_FORWARD = 2 * 32 * (32 * 32 * 16 * 25 + 16 * 16 * 64 * 16 * 25 + 64 * 10)
"""Multiplications and additions of a forward pass of 32 images: two 5x5 convolutions, one dense layer."""


def test_both_forms_compute_the_same_differences() -> None:
    task, params, batch = round_of("LeNet", 0, (1, 32, 32))
    exact = {name: p.double() for name, p in params.items()}
    _, fast, plain, _ = candidates(task, exact, type(batch)(batch.x.double(), batch.y), 4, seed=3)
    assert plain().shape == (4,)
    torch.testing.assert_close(fast()[0].double(), plain(), rtol=0.02, atol=1e-7)  # the fast one is in single precision


def test_k_directions_take_k_plus_one_forwards_and_a_gradient_up_to_three() -> None:
    backprop, fast, plain, draw = candidates(*round_of("LeNet", 0, (1, 32, 32)), 5, seed=3)
    assert operations(fast) == operations(plain) == 6 * LENET_FORWARD
    assert 2 * LENET_FORWARD < operations(backprop) < 3 * LENET_FORWARD  # no gradient with respect to the images
    assert operations(draw) == 0


def test_ratios_are_those_of_the_times_in_the_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compute, "REPETITIONS", 2)
    (row,) = measure(Work("LeNet", 1, 2), Machine(), 0, lambda share, text: None)
    assert row["seconds_over_K"] == pytest.approx(row["forwards_ms"] / row["backprop_ms"] / 2)
    assert row["plain_seconds_over_K"] == pytest.approx(row["plain_ms"] / row["backprop_ms"] / 2)
    assert 0 < row["drawing_ms"] < row["forwards_ms"]
    assert row["parameters"] == 26_730


def test_turns_alternate_and_the_first_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compute, "REPETITIONS", 3)
    order: list[str] = []
    spent = compute._alternate((lambda: order.append("a"), lambda: order.append("b")), lambda share, text: None)
    assert order == ["a", "b"] * 4
    assert [len(seconds) for seconds in spent] == [3, 3]
