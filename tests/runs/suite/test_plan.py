"""The plan of a folder: what it holds for, and what makes it void."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers.suite import TINY, measure, planned, records_in

from fedarena.runs.suite import plan as plans
from fedarena.runs.suite.plan import digest_of, read_plan, write_plan
from fedarena.runs.suite.run import plan_of


def test_a_plan_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    _, plan = planned(TINY, tmp_path)
    write_plan(plan, tmp_path)
    assert read_plan(tmp_path) == plan
    assert len(plan.trials) == 56
    assert {t.refused for t in plan.trials} == {""}
    assert plan.seeds == (0, 1)


def test_its_keys_are_those_that_records_have(tiny: Path, tmp_path: Path) -> None:
    _, plan = planned(TINY, tmp_path)
    records = records_in(tiny).values()
    assert {t.key for t in plan.trials} == {r["trial"]["key"] for r in records}
    said = {t.key: (t.defense, t.attack, t.party, t.form, t.knows, t.goal, t.seed) for t in plan.trials}
    for r in records:
        found = (r["defense"], r["attack"], r["party"], r["form"], r["attacker_knowledge"], r["goal"], r["seed"])
        assert said[r["trial"]["key"]] == found


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "3",
        "{}",
        '{"plan": 99}',
        '{"plan": 1}',
        '{"plan": 1, "trials": [{"name": 3}]}',
        "\udcff",
        "[" * 100_000,
    ],
)
def test_a_file_that_is_no_plan_gives_none(text: str, tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(text, errors="surrogateescape")
    assert read_plan(tmp_path) is None


def test_a_plan_is_made_anew_for_anything_that_changes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suite, plan = planned(TINY, tmp_path)
    data = tmp_path / "data"
    data.mkdir()
    digests = {digest_of(suite, (0, 1), None), digest_of(suite, (0,), None)}
    digests.add(digest_of(replace(suite, text=suite.text + "\n"), (0, 1), None))
    digests.add(digest_of(suite, (0, 1), data))
    (data / "set.npz").write_text("a")
    digests.add(digest_of(suite, (0, 1), data))
    os.utime(data / "set.npz", (1, 1))
    digests.add(digest_of(suite, (0, 1), data))
    monkeypatch.setattr(plans, "__version__", "99")
    digests.add(digest_of(suite, (0, 1), None))
    assert len(digests) == 7
    monkeypatch.undo()
    write_plan(plan, tmp_path / "out")

    def untouched(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("the plan holds")

    monkeypatch.setattr("fedarena.runs.suite.run.make_plan", untouched)
    assert plan_of(suite, suite.seeds, tmp_path / "out", None) == plan
    with pytest.raises(AssertionError, match="the plan holds"):
        plan_of(suite, (0,), tmp_path / "out", None)


def test_a_damaged_plan_costs_nothing_but_its_making(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "records").symlink_to(tiny / "records")
    (tmp_path / "out" / "plan.json").write_text(json.dumps({"plan": 1})[:5])
    assert measure(TINY, tmp_path).done == 0
    assert read_plan(tmp_path / "out") is not None


def test_pairs_that_cannot_run_are_refused_and_no_others(tmp_path: Path) -> None:
    text = TINY.replace(
        'defenses = ["fedavg", "dbcl"]\nattacks = ["sign', 'defenses = ["dbcl", "bulyan"]\nattacks = ["sign'
    )
    _, plan = planned(text, tmp_path)
    refused = [t for t in plan.trials if t.refused]
    assert {t.defense for t in refused} == {"bulyan"}
    assert {t.key for t in refused} == {""}
    assert {t.attack for t in refused} == {"none", "sign-flip", "pixel-trigger"}


def test_secure_sums_that_cannot_work_are_refused_in_the_plan(tmp_path: Path) -> None:
    text = TINY.replace('defenses = ["fedavg", "dbcl"]\nattacks = ["last', 'defenses = ["zero-sum"]\nattacks = ["last')
    _, plan = planned(f"{text}\n[methods.zero-sum]\nrepeat = 1234567\n", tmp_path)
    told = {t.refused for t in plan.trials if t.defense == "zero-sum"}
    (why,) = told
    assert why.startswith("secure zero-sum: option 'repeat' is 1234567, allowed: a divisor of ")
    assert {t.refused for t in plan.trials if t.defense != "zero-sum"} == {""}
