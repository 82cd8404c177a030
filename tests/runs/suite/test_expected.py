"""What a plan expects to be n/a is what a run then finds to be n/a, for the same reason."""

from __future__ import annotations

from pathlib import Path

from helpers.suite import POISON, READ, measure, planned

from fedarena.records.store import Store
from fedarena.runs.suite.expected import expected
from fedarena.runs.suite.trials import trials_of

TEXT = f"""
title = "Much that cannot start"
seeds = [0]
{READ}{POISON}
[[matrix]]
problem = "read"
defenses = ["fedavg", "krum", "median", "two-stage", "baffle"]
attacks = ["last-layer-label", "model-extraction", "analytic"]
parties = ["server", "client"]

[[matrix]]
problem = "poison"
defenses = ["fedavg", "pairwise-masks"]
attacks = ["alie", "steer", "sign-flip"]
"""


def test_the_expected_reasons_are_those_of_the_run(tmp_path: Path) -> None:
    suite, plan = planned(TEXT, tmp_path)
    foretold = expected(trials_of(suite, plan.seeds))
    measure(TEXT, tmp_path)
    store = Store(tmp_path / "out")
    found = {t.name: store.trial(t.key)[0] for t in plan.trials if not t.refused}
    measured = {name: r["reason"] for name, r in found.items() if r["status"] == "n/a"}
    assert foretold == measured
    assert {(found[n]["attack"], found[n]["defense"], found[n]["party"]) for n in foretold} >= {
        ("last-layer-label", "median", "client"),
        ("model-extraction", "two-stage", "server"),
        ("alie", "pairwise-masks", "client"),
        ("steer", "fedavg", "client"),
        ("analytic", "baffle", "server"),
    }


def test_nothing_is_expected_of_attacks_that_can_start(tmp_path: Path) -> None:
    text = TEXT.replace('"krum", "median", "two-stage", "baffle"', '"dbcl"').replace(
        '"model-extraction", "analytic"', '"dlg"'
    )
    suite, plan = planned(text.replace('"alie", "steer", ', ""), tmp_path)
    assert expected(trials_of(suite, plan.seeds)) == {}
