"""Figures 2 and 3: one batch a round at Adam's server, columns that differ in one thing, claims of the right pieces."""

from __future__ import annotations

import pytest

from fedarena.reproduce.baffle import batch_level, common, figure2, figure3
from fedarena.reproduce.baffle.batch_level import Federation, less, spec_of
from fedarena.reproduce.machine import Machine

MNIST = Federation("mnist", "lenet-baffle", epochs=2)


def test_clients_upload_one_batch_a_round_and_the_server_runs_adam() -> None:
    assert MNIST.rounds == 2 * 171  # 5,500 images a client
    for column, experiment in figure2.experiments(MNIST).items():
        spec = spec_of(MNIST, experiment, Machine(), 0)
        schedule = spec.problem.schedule
        assert (schedule.rounds, schedule.fedsgd, schedule.batch_size) == (342, True, 32)
        assert (schedule.server_optimizer, schedule.lr, schedule.adam_beta2) == ("adam", 0.01, 0.99)
        k = getattr(spec.defense.options, "directions", None)
        assert column == ("backprop" if k is None else f"K={k}")
        assert getattr(spec.defense.options, "perturbations", "shared") == "shared"


def test_ablations_change_one_thing_and_central_halves_the_directions() -> None:
    specs = {column: spec_of(MNIST, one, Machine(), 0) for column, one in figure3.experiments(MNIST).items()}
    plain = specs["plain"]
    changed = {
        column: (spec.defense != plain.defense, spec.problem.model_options != plain.problem.model_options)
        for column, spec in specs.items()
    }
    assert changed == {
        "plain": (False, False),
        "central": (True, False),
        "relu": (False, True),
        "selu": (False, True),
        "no average": (True, False),
    }
    assert getattr(specs["central"].defense.options, "directions", 0) == 50
    assert getattr(specs["no average"].defense.options, "ema", 0) is None


def test_only_the_whole_curve_of_the_papers_network_is_compared() -> None:
    compared = [p.piece for p in figure2.TABLE.published if not p.apart]
    assert compared == ["cifar10, wrn-10-2, 40 epochs"]
    assert {p.paper for p in figure2.TABLE.published} == {0.02}


def test_rows_hold_every_column_and_the_differences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(common.IMAGES, "digits", 719)
    monkeypatch.setitem(figure3.DIRECTIONS, "digits", 100)
    digits = Federation("digits", "lenet-baffle", epochs=1)
    assert digits.rounds == 2

    def nothing(share: float, text: str) -> None:
        assert 0 <= share <= 1

    (row,) = figure2.measure(digits, Machine(), 0, nothing)
    assert set(figure2.MEASURED) <= set(row)
    assert row["gain_2000_to_5000"] == row["K=5000"] - row["K=2000"]
    (row,) = figure3.measure(digits, Machine(), 0, nothing)
    assert set(figure3.MEASURED) <= set(row)
    assert row["less relu"] == row["plain"] - row["relu"]


def test_a_run_without_result_has_no_difference() -> None:
    assert less({"a": 0.5, "b": 0.25}, "a", "b") == 0.25
    assert less({"a": 0.5, "b": None}, "a", "b") is None
    assert batch_level.CLIENTS == 10
