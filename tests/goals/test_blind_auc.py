"""Where training and held-out samples differ, membership counts beyond what the files give away."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from helpers.cheats import READ
from helpers.paths import DATA

from fedarena import goals
from fedarena.core import registry
from fedarena.core.threat import Threat
from fedarena.federation import compose
from fedarena.federation.spec import GroupSpec
from fedarena.problem.problem import Problem, build
from fedarena.problem.schedule import Schedule
from fedarena.runs import trial

DECLARED = {"mnist": 0.57, "usps": 0.54, "olivetti": 0.61, "lfw": 0.57, "digits": 0.5}


@pytest.mark.parametrize("goal", ["membership", "training-membership"])
def test_the_leak_begins_at_what_the_files_give_away(goal: str) -> None:
    leak = goals.find(goal).leak
    assert leak({"auc": 0.6, "blind_auc": 0.6}) == 0
    assert leak({"auc": 1.0, "blind_auc": 0.6}) == 1
    assert leak({"auc": 0.8, "blind_auc": 0.6}) == pytest.approx(0.5)
    assert leak({"auc": 0.7}) == pytest.approx(2 * 0.7 - 1)


@pytest.mark.parametrize("attack", ["joint-membership", "membership-inference"])
def test_a_record_says_what_the_files_give_away(attack: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def differing(*given: Any) -> Problem:
        return replace(build(*given), blind_auc=0.6)

    monkeypatch.setattr(trial, "build", differing)
    schedule = Schedule(rounds=30, batch_size=8, lr=0.1)
    spec = GroupSpec(
        replace(READ, schedule=schedule),
        defense=compose.parse_defense("fedavg"),
        attack=compose.parse_attack(attack, {"shadows": "2"} if attack == "membership-inference" else {}),
        threats=(Threat("server", "paper"),),
        seed=0,
    )
    (one,) = trial.prepare(spec)
    record, _ = trial.attack(one)
    assert record["metrics"]["blind_auc"] == 0.6
    leak = max(0.0, (record["metrics"]["auc"] - 0.6) / 0.4)
    assert record["scores"]["privacy"] == pytest.approx(1 - leak)
    assert record["metrics"]["advantage"] == pytest.approx((record["metrics"]["auc"] - 0.6) / 0.4)


@pytest.mark.parametrize(("name", "auc"), DECLARED.items())
def test_data_sets_declare_what_a_forest_found(name: str, auc: float) -> None:
    if name != "digits" and not DATA.is_dir():
        pytest.skip("the real data are not here")
    assert registry.find("dataset", name).load()(DATA if DATA.is_dir() else None).blind_auc == auc
