"""Rules, secure sums and server steps of other packages follow from what they are given, or they fail."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers.cheats import POINTS, POISONED
from helpers.plugins import installed

from fedarena.core import registry
from fedarena.core.card import Kind
from fedarena.core.threat import Knowledge, Threat
from fedarena.federation import compose, replay
from fedarena.federation.replay import Replays
from fedarena.federation.spec import GroupSpec, MethodSpec
from fedarena.records.schema import Record
from fedarena.runs.engine import run_groups
from fedarena.runs.trial import prepare

SECRET = "fedcba9876543210" * 2
NOT_GIVEN = "does not follow from what it was given: it looked elsewhere, or it keeps hidden state"


@pytest.fixture(autouse=True)
def _plugins(tmp_path: Path) -> Iterator[None]:
    with installed(tmp_path / "site", POINTS):
        yield


def poisoned(defense: str, attack: str, knows: Knowledge = "own", rounds: int = 30) -> Record:
    """The record of a poisoned run, without its references."""
    schedule = replace(POISONED.schedule, rounds=rounds)
    spec = GroupSpec(
        replace(POISONED, schedule=schedule),
        defense=compose.parse_defense(defense),
        attack=compose.parse_attack(attack),
        threats=(Threat("client", "paper", knows=knows),),
        seed=1,
        secret=SECRET,
    )
    (one,) = prepare(spec)
    return one.record


def clean(defense: str) -> Record:
    spec = GroupSpec(POISONED, defense=compose.parse_defense(defense), attack=None, threats=(), seed=1, secret=SECRET)
    (one,) = prepare(spec)
    return one.record


def measured(one: Record) -> Any:
    return {name: one[name] for name in ("status", "reason", "metrics", "attacked")}  # type: ignore[literal-required]


def unprotected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Replays, "call", lambda self, t, what, function, *args: function(*args))


def test_a_rule_that_looks_for_the_corrupted_clients_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    caught = poisoned("peeking", "ipm")
    assert caught["status"] == "failed"
    assert caught["reason"].startswith("peeking: the result of aggregate in round ")
    assert NOT_GIVEN in caught["reason"]
    assert clean("peeking")["status"] == "ok"  # nobody is corrupted: there is nothing to find
    unprotected(monkeypatch)
    cheating, honest = poisoned("peeking", "ipm"), poisoned("mean", "ipm")
    assert cheating["metrics"]["accuracy"] > honest["metrics"]["accuracy"] + 0.3


def test_a_rule_with_hidden_state_fails_in_a_run_without_an_attack(monkeypatch: pytest.MonkeyPatch) -> None:
    # In round 0 there is no state yet, and this draw is of the rounds.
    monkeypatch.setattr(replay.secrets, "randbelow", lambda n: n - 1)
    caught = clean("remembering")
    assert caught["status"] == "failed"
    assert caught["reason"] == f"remembering: the result of aggregate in round 9 {NOT_GIVEN}"


def test_the_attacks_that_read_a_run_with_hidden_state_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay.secrets, "randbelow", lambda n: n - 1)
    spec = GroupSpec(
        POISONED,
        defense=MethodSpec("fedavg"),
        attack=compose.parse_attack("last-layer-label"),
        threats=(Threat("server", "paper"),),
        seed=1,
    )
    hidden = replace(spec, defense=compose.parse_defense("counting"))
    (one,), _ = (result.records for result in run_groups([hidden, spec], 1))
    assert one["status"] == "failed"
    assert one["reason"].startswith("counting: the result of aggregate in round ")


def test_a_secure_sum_that_looks_for_the_corrupted_clients_fails() -> None:
    caught = poisoned("fedavg+summing", "ipm")
    assert caught["reason"].startswith("summing: the result of sum without messages in round ")
    assert clean("fedavg+summing")["status"] == "ok"


@pytest.mark.parametrize(
    ("defense", "attack", "knows"),
    [("bucketing+median", "ipm", "omniscient"), ("dbcl", "label-flip", "own"), ("pairwise-masks", "label-flip", "own")],
)
def test_an_honest_plug_in_gives_what_the_same_code_gives_unchecked(
    defense: str, attack: str, knows: Knowledge
) -> None:
    built_in = poisoned(defense, attack, knows)
    plug_in = poisoned("+".join(f"{part}-copy" for part in defense.split("+")), attack, knows)
    assert built_in["status"] == "ok"
    assert measured(plug_in) == measured(built_in)


@pytest.mark.parametrize(
    ("defense", "attack", "knows"),
    [
        ("krum", "min-sum", "omniscient"),
        ("centered-clipping", "mimic", "omniscient"),
        ("fltrust", "delayed+label-flip", "own"),
        ("two-stage", "bank", "own"),
        ("fetchsgd", "pixel-trigger", "own"),
        ("nnm+dnc", "min-max", "omniscient"),
        ("dp-rsa", "gaussian", "own"),
    ],
)
def test_no_built_in_method_would_be_accused(
    defense: str, attack: str, knows: Knowledge, monkeypatch: pytest.MonkeyPatch
) -> None:
    def all_parts(kind: Kind, method: MethodSpec) -> list[tuple[Kind, registry.Entry]]:
        kinds = [kind, *((registry.find_part(p.name).kind if kind == "defense" else kind) for p in method.rest)]
        return [(k, registry.Entry(p.name, "", "x")) for k, p in zip(kinds, (method, *method.rest), strict=True)]

    monkeypatch.setattr(replay.compose, "foreign", all_parts)
    one = poisoned(defense, attack, knows, rounds=24)
    assert one["status"] == "ok", one["reason"]


def test_one_of_the_first_rounds_is_replayed_and_one_of_the_rest() -> None:
    seen = set()
    for _ in range(50):
        replays = Replays.of_defense(compose.parse_defense("peeking"), _task())
        first, rest = sorted(replays.chosen)
        assert first < replay.FIRST <= rest < 30
        seen.add((first, rest))
    assert len(seen) > 20


def _task() -> Any:
    from fedarena.problem.problem import build

    return build(POISONED, 0).task
