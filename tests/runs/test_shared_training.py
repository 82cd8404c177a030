"""Which groups share a run, which parties share an attack, and what stands as whose reference."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers.paths import ROOT
from helpers.suite import PROPERTY, TINY

from fedarena.core.threat import Threat
from fedarena.federation.spec import GroupSpec
from fedarena.goals.prepared import task_digest
from fedarena.runs import trial
from fedarena.runs.suite.suite import parse
from fedarena.runs.suite.trials import trials_of
from fedarena.runs.trial import attack_alike, given_by, prepare, references, shared, training_of


def specs(text: str) -> dict[tuple[str, str, str], GroupSpec]:
    """One spec a defense, attack and probe."""
    found = [t.spec for t in trials_of(parse(text, Path("play.toml")), (0,))]
    return {(s.defense.name, s.attack.name if s.attack else "none", s.probe.name if s.probe else ""): s for s in found}


def test_inference_attacks_and_honest_runs_read_one_run() -> None:
    found = specs(TINY)
    reading = [found["dbcl", attack, ""] for attack in ("dlg", "last-layer-label", "gradient-estimate")]
    assert len({training_of(spec) for spec in reading}) == 1
    assert shared(reading) == [[0, 1, 2]]
    changed = [replace(reading[0], seed=1), replace(reading[0], device="cuda"), replace(reading[0], data_dir=Path("a"))]
    assert len(shared([reading[0], *changed])) == 4


def test_an_attack_that_says_what_clients_work_on_has_runs_of_its_own() -> None:
    found = specs(PROPERTY)
    property_, label = found["dbcl", "property-inference", ""], found["dbcl", "last-layer-label", ""]
    assert shared([property_, label]) == [[0], [1]]
    own, plain = references(property_)
    assert own.under == plain.under == property_.attack
    assert plain in given_by(found["fedavg", "property-inference", ""])
    assert plain not in given_by(found["fedavg", "last-layer-label", ""])


def test_poisoned_runs_are_nobody_s_reference_and_shared_with_nobody() -> None:
    found = specs(TINY)
    flip, trigger = found["dbcl", "sign-flip", ""], found["dbcl", "pixel-trigger", ""]
    assert training_of(flip).poisoned
    assert given_by(flip) == []
    assert shared([flip, flip]) == [[0], [1]]
    calm = [s for key, s in found.items() if key[1] == "none"]
    for spec, probe in ((flip, None), (trigger, trigger.attack)):
        own, plain = references(spec)
        assert (own.probe, own.under, own.knows, own.defense.name) == (probe, None, "", "dbcl")
        assert (plain.probe, plain.under, plain.defense.name) == (None, None, "fedavg")
        assert sum(own in given_by(s) for s in calm) >= 1
    # A model that a trigger was tried on is as good a reference as one that it was not.
    tried = found["dbcl", "none", "pixel-trigger"]
    assert references(flip)[0] in given_by(tried)
    assert references(trigger)[0] not in given_by(replace(tried, probe=None))


def test_parties_that_see_the_same_share_an_attack(monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs once. Each record is as if its party had attacked alone, and has the seconds of the attack."""
    spec = specs(TINY)["fedavg", "dlg", ""]
    server, client, listener, other_form = (
        prepare(replace(spec, threats=(Threat(party, form),)))[0]
        for party, form in (
            ("server", "adaptive"),
            ("client", "adaptive"),
            ("eavesdropper", "adaptive"),
            ("server", "paper"),
        )
    )
    shared_task = task_digest(server)
    assert shared_task == task_digest(listener) != ""
    assert shared_task not in map(task_digest, (client, other_form, prepare(replace(spec, seed=1))[0]))
    alone = [trial.attack(one)[0] for one in (server, listener)]
    answer, calls = trial._answer, []

    def slow(prepared: Any, *args: Any) -> Any:
        calls.append(prepared)
        return *answer(prepared, *args)[:2], 1000.0

    monkeypatch.setattr(trial, "_answer", slow)
    together = [record for record, _ in attack_alike([server, listener])]
    assert len(calls) == 1
    assert all(1000 <= one["cost"]["attack_seconds"] < 2000 for one in together)
    assert [one["party"] for one in together] == ["server", "eavesdropper"]
    assert [{**one, "cost": None} for one in together] == [{**one, "cost": None} for one in alone]


def test_attacks_do_not_ask_for_the_party() -> None:
    """Which is why parties that see the same can share one."""
    files = sorted((ROOT / "attacks").rglob("*.py"))
    assert files
    assert [str(path) for path in files if re.search(r"\.threat\b(?!\.form| import)", path.read_text())] == []
