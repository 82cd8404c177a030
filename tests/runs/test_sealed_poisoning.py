"""Poisoning attacks of other packages: they do what the same code does here, and see and change nothing else."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers.cheats import EARLY, POINTS, POISONED
from helpers.plugins import installed

from fedarena.cli import main
from fedarena.core import registry
from fedarena.core.errors import UserError
from fedarena.core.threat import Knowledge, Threat
from fedarena.federation import compose, foreign_attack
from fedarena.federation.spec import GroupSpec
from fedarena.problem.problem import Problem
from fedarena.records.schema import Record
from fedarena.runs.trial import prepare

SECRET = "fedcba9876543210" * 2


@pytest.fixture(autouse=True)
def _plugins(tmp_path: Path) -> Iterator[None]:
    with installed(tmp_path / "site", {"attacks": {**POINTS["attacks"], **EARLY}}):
        yield


def poisoned(attack: str, knows: Knowledge = "own", options: dict[str, str] | None = None, rounds: int = 8) -> Record:
    """The record of a poisoned run, without its references."""
    spec = GroupSpec(
        replace(POISONED, schedule=replace(POISONED.schedule, rounds=rounds)),
        defense=compose.parse_defense("fedavg"),
        attack=compose.parse_attack(attack, options),
        threats=(Threat("client", "paper", knows=knows),),
        seed=1,
        secret=SECRET,
    )
    (one,) = prepare(spec)
    return one.record


def accuracy(attack: str, rounds: int = 8) -> float:
    return poisoned(attack, rounds=rounds)["metrics"]["accuracy"]


def measured(one: Record) -> Any:
    tuned = {name: value for name, value in one["tuned"].items() if name != "ran_with"}
    return tuned, {name: one[name] for name in ("status", "reason", "metrics", "attacked")}  # type: ignore[literal-required]


@pytest.mark.parametrize(
    ("attack", "copy", "knows", "options"),
    [
        ("label-flip", "label-flip-copy", "own", {}),
        ("min-max", "min-max-copy", "omniscient", {}),
        ("ipm", "ipm-copy", "own", {"tune": "3", "tune_rounds": "3"}),
        ("pixel-trigger", "pixel-trigger-copy", "own", {}),
        ("delayed+label-flip", "delayed-copy+label-flip", "own", {}),
        ("delayed+label-flip", "delayed+label-flip-copy", "own", {}),
        ("poisoned-fl", "poisoned-fl-copy", "none", {}),
    ],
)
def test_an_honest_attack_does_what_it_does_in_the_harness(
    attack: str, copy: str, knows: Knowledge, options: dict[str, str]
) -> None:
    built_in = poisoned(attack, knows, options)
    assert built_in["status"] == "ok"
    assert measured(poisoned(copy, knows, options)) == measured(built_in)


def test_an_attack_that_walks_callers_finds_no_honest_uploads(monkeypatch: pytest.MonkeyPatch) -> None:
    harmless = accuracy("honest", rounds=30)
    assert accuracy("reading", rounds=30) == harmless > 0.5
    monkeypatch.setattr(registry.Entry, "seals", lambda entry, kind: False)
    assert accuracy("reading", rounds=30) < harmless - 0.3


def test_both_models_are_shown_the_same_triggered_inputs() -> None:
    liar, honest = poisoned("liar", rounds=30), accuracy("honest", rounds=30)
    assert liar["metrics"]["accuracy"] == honest > 0.5
    assert liar["metrics"]["attack_success_rate"] < 0.1


def test_what_an_attack_patches_dies_with_its_process() -> None:
    evaluate = Problem.evaluate
    assert accuracy("early-poison") == accuracy("honest") > 0
    assert Problem.evaluate is evaluate
    assert "helpers.early_cheats" not in sys.modules


@pytest.mark.parametrize("when", ["make", "craft", "trigger"])
def test_an_attack_that_breaks_says_why(when: str) -> None:
    broken = poisoned("fragile", options={"when": when})
    assert broken["status"] == "failed"
    assert broken["reason"] == "its process ended with status 4 and gave no answer"


def test_an_attack_that_refuses_is_bad_input() -> None:
    with pytest.raises(UserError, match=r"^attack fragile refuses$"):
        poisoned("fragile", options={"when": "refuse"})


@pytest.mark.parametrize(
    ("when", "reason"),
    [
        ("late", "attack fragile refuses while it runs: option 'rounds' is wrong"),
        ("strength", "a strength of attack fragile is not a finite number: {'z': nan}"),
    ],
)
def test_an_attack_fails_alone_whatever_it_says(when: str, reason: str) -> None:
    failed = poisoned("fragile", options={"when": when})
    assert (failed["status"], failed["reason"]) == ("failed", reason)


def test_a_command_goes_on_where_an_attack_breaks_when_made(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    line = "run --defense fedavg --attack fragile --set fragile.when=strength --clients 10 --corrupted 2 --rounds 4"
    assert main([*line.split(), "--model", "mlp", "--jobs", "1", "--quiet", "--secret", SECRET, "--out", "out"]) == 1
    out, err = capfd.readouterr()
    assert "a strength of attack fragile is not a finite number" in " ".join(out.split())
    assert "Traceback" not in out + err


@pytest.mark.parametrize("attack", ["huge", "undefined"])
def test_what_is_not_finite_counts_as_zeros_however_it_is_sent(attack: str) -> None:
    sent = poisoned(attack)
    assert sent["status"] == "ok"
    assert sent["metrics"] == poisoned("silent")["metrics"]


def test_every_run_has_a_process_of_its_own_that_ends_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    started = []

    class Watched(foreign_attack.FreshProcess):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            started.append(self._process)

    monkeypatch.setattr(foreign_attack, "FreshProcess", Watched)
    for _ in range(2):
        poisoned("label-flip-copy")
    of_runs = started[-2:]  # the first may be the one that is asked about classes
    assert len({one.pid for one in of_runs}) == 2
    assert all(one.returncode is not None for one in of_runs)
