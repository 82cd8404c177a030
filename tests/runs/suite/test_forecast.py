"""How long the rest may take, from what others of its kind have cost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers.suite import TINY, measure, planned

from fedarena.records.schema import Record
from fedarena.records.store import Store
from fedarena.runs.suite.forecast import Costs, forecast
from fedarena.runs.suite.plan import Planned

ONE = Planned(name=("a",), key="k", problem="p", defense="fedavg", seed=0, shown=True, counts=True)


def trial(defense: str, attack: str, knows: str = "", **changes: Any) -> Planned:
    return replace(ONE, defense=defense, attack=attack, knows=knows, **changes)


def spent(seconds: float, attack: float = 0.0) -> list[Record]:
    return [{"cost": {"seconds": seconds, "attack_seconds": attack}}]


def test_unknown_costs_are_not_guessed() -> None:
    assert Costs().of(trial("dbcl", "dlg")) is None


def test_the_same_on_another_seed_counts_first() -> None:
    costs = Costs()
    assert costs.add(trial("dbcl", "dlg"), spent(100, 2) + spent(100, 4)) == 6  # two readings of one run
    costs.add(trial("dbcl", "dlg", seed=1), spent(100, 8))
    costs.add(trial("fedavg", "dlg"), spent(100, 1))
    assert costs.of(trial("dbcl", "dlg", seed=2)) == 7
    assert costs.is_known(trial("dbcl", "dlg", seed=2))
    assert not costs.is_known(trial("krum", "dlg"))
    assert costs.of(trial("krum", "dlg")) == 5  # the mean of the attack
    assert costs.of(trial("krum", "idlg")) == 5  # of all that read a run
    assert costs.of(trial("krum", "none")) == 5  # of all


def test_a_poisoned_run_costs_its_clean_run_times_what_the_attack_adds() -> None:
    costs = Costs()
    costs.add(trial("fedavg", "none"), spent(10))
    costs.add(trial("pbpfl", "none"), spent(400))
    assert costs.of(trial("pbpfl", "bank", "own")) == 400
    costs.add(trial("fedavg", "bank", "own"), spent(15))
    assert costs.of(trial("pbpfl", "bank", "own")) == pytest.approx(600)
    assert costs.of(trial("pbpfl", "alie", "own")) == 400


def test_the_forecast_of_a_folder_counts_what_is_missing(tiny: Path, tmp_path: Path) -> None:
    suite, plan = planned(TINY, tmp_path)
    nothing, whole = Store(tmp_path), Store(tiny)
    assert forecast(suite, plan, nothing).seconds is None
    assert forecast(replace(suite, minutes=3), plan, nothing).seconds == 360  # on two cores
    assert forecast(replace(suite, minutes=3), replace(plan, seeds=(0,)), nothing).seconds == 180
    told = forecast(suite, plan, whole)
    assert (told.seconds, told.missing, told.source) == (0.0, 0, "everything is there")
    measure(TINY, tmp_path, seeds=(0,))
    half = forecast(suite, plan, Store(tmp_path / "out"))
    assert (half.missing, half.measured) == (28, 28)
    costs = Costs()
    first = [costs.add(t, found) for t in plan.trials if (found := Store(tmp_path / "out").trial(t.key))]
    assert half.seconds == pytest.approx(sum(first))


def test_time_left_goes_down_to_nothing(tmp_path: Path) -> None:
    told: list[tuple[int, int, float | None]] = []
    measure(
        TINY, tmp_path, seeds=(0,), report_progress=lambda done, total, text, left: told.append((done, total, left))
    )
    assert told[0] == (0, 28, None)
    assert [(done, total) for done, total, _ in told[1:]] == [(i, 28) for i in range(1, 29)]
    assert told[-1][2] is not None
    assert 0 <= told[-1][2] < 60
