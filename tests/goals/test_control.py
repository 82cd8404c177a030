"""What a defense says of its messages is held against what the harness itself reads of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from helpers.attacked import asked_of_model
from helpers.degenerate import installed

from fedarena import goals
from fedarena.core import registry
from fedarena.core.threat import FORMS, PARTIES
from fedarena.federation import compose
from fedarena.federation.spec import GroupSpec, threats
from fedarena.goals.prepared import CompleteRecord, PreparedRecord
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.records.schema import RECORD, Record
from fedarena.runs.engine import run_groups
from fedarena.runs.trial import attack, prepare_together, shared

ATTACKS = {
    "reconstruction": ("analytic", "dlg", "idlg", "inverting-gradients"),
    "labels": ("last-layer-label",),
    "membership": ("joint-membership", "marginal-membership"),
    "property": ("property-inference",),
    "client-membership": ("upload-regression", "fedmia"),
    "source": ("source-inference",),
}
"""Goal → attacks that read uploads."""
SMALL = {"property-inference": {"rounds": "8", "round_batches": "2"}, "upload-regression": {"rounds": "12"}}


def group(defense: str, method: str, options: Mapping[str, str] | None = None, **schedule: Any) -> GroupSpec:
    made = compose.parse_defense(defense, options or {})
    loss = dict(compose.defense_cards(defense)[0].usual).get("loss", "cross-entropy")
    model = registry.find("model", "mlp").parse({"widths": "32", **asked_of_model(defense)})
    rounds = Schedule(**{"rounds": 12, "batch_size": 1, "lr": 0.1, "loss": loss, **schedule})
    problem = ProblemSpec("digits", model="mlp", partition="iid", clients=4, model_options=model, schedule=rounds)
    if schedule.get("batch_size") == 16:  # of 20, so that nearly all samples of a client are behind each upload
        few = registry.find("partition", "few").parse({"samples": "20"})
        problem = replace(problem, partition="few", partition_options=few)
    attacked = compose.parse_attack(method, SMALL.get(method, {}))
    return GroupSpec(problem, defense=made, attack=attacked, threats=threats(PARTIES, FORMS), seed=0)


def prepared(groups: list[GroupSpec]) -> list[PreparedRecord]:
    """The records of all groups, each training once."""
    together = [prepare_together([groups[i] for i in indices]) for indices in shared(groups)]
    return [one for of_training in together for of_group in of_training for one in of_group]


def controlled(cells: list[PreparedRecord]) -> list[Record]:
    """The records, attacked, of those whose messages the harness reads itself."""
    return [attack(c)[0] for c in cells if not isinstance(c, CompleteRecord) and c.control is not None]


PROTOCOLS = registry.registries()["defense"].names()


@pytest.mark.parametrize("defense", [*PROTOCOLS, "krum", "median", "mean", "pairwise-masks", "dbcl+zero-sum"])
def test_no_shipped_protocol_is_silent_where_a_control_leaks(defense: str) -> None:
    cells = prepared([group(defense, methods[0], rounds=8) for methods in ATTACKS.values()])
    assert len(cells) >= len(ATTACKS) * len(PARTIES) * len(FORMS)
    # Whether there is a control reading depends on the goal of an attack, and not on the attack.
    held = {c.record["goal"] for c in cells if not isinstance(c, CompleteRecord) and c.control is not None}
    cells += prepared([group(defense, method, rounds=8) for goal in held for method in ATTACKS[goal][1:]])
    assert not [c.record["reason"] for c in cells if c.record["status"] == "failed"]
    assert [(r["attack"], r["party"], r["form"]) for r in controlled(cells) if "control" in r] == []


def test_the_attacks_are_of_all_goals_that_read_uploads() -> None:
    kinds = {name: registry.find("attack", name).load() for name in registry.registries()["attack"].names()}
    named = {name: goal for name, kind in kinds.items() if (goal := getattr(kind, "goal", None))}
    assert {goal for goal in named.values() if goals.find(goal).reads_uploads} == set(ATTACKS)
    assert all(named[method] == goal for goal, methods in ATTACKS.items() for method in methods)


@pytest.fixture(scope="module")
def plug_ins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with installed(tmp_path_factory.mktemp("control") / "package"):
        yield


@cache
def records_of(method: str) -> Mapping[str, Sequence[Record]]:
    """What an attack leaves of both defenses that hide something, and of plain FedAvg."""
    training = {"batch_size": 16, "rounds": 40} if method == "upload-regression" else {}
    names = ("silent", "misleading", "fedavg")
    results = run_groups([group(name, method, **training) for name in names], 1)
    return {name: result.records for name, result in zip(names, results, strict=True)}


@pytest.mark.usefixtures("plug_ins")
@pytest.mark.parametrize(("defense", "said"), [("silent", "nothing"), ("misleading", "something else")])
@pytest.mark.parametrize(
    ("method", "metric", "leaks"),
    [
        ("analytic", "identified", "samples"),
        ("last-layer-label", "label_accuracy", "labels"),
        ("joint-membership", "auc", "who was in a batch"),
        ("upload-regression", "auc", "who is in a client's data set"),
    ],
)
def test_what_a_defense_hides_stands_in_the_record(
    defense: str, said: str, method: str, metric: str, leaks: str
) -> None:
    hiding, honest = records_of(method)[defense], records_of(method)["fedavg"]
    assert len(hiding) == len(threats(PARTIES, FORMS))
    for record, like in zip(hiding, honest, strict=True):
        RECORD(record, "")
        control = record["control"]
        assert (control["said"], control["outcome"]) == (said, f"leaks {leaks}")
        assert control["metrics"][metric] == pytest.approx(like["metrics"][metric], abs=0.05)
        assert record["status"] == ("n/a" if defense == "silent" else "ok")
        if defense == "silent":
            assert record["scores"] == {}
            assert record["reason"].startswith(
                "there is nothing to see; but a control reading of the same messages leaks"
            )
        assert "control" not in like


@pytest.mark.usefixtures("plug_ins")
def test_a_control_reading_that_leaks_nothing_leaves_the_record_as_it_was() -> None:
    """One label of a guess in ten is right by chance: with two labels no interval lies above it."""
    (cell, *_) = prepared([group("silent", "last-layer-label")])
    assert not isinstance(cell, CompleteRecord)
    assert cell.control is not None
    classes, sizes = cell.control.answers
    wrong = replace(cell.control, answers=([(y + 1) % 10 for y in classes], sizes))
    record, _ = attack(replace(cell, control=wrong))
    assert record == cell.record
    assert (record["reason"], "control" in record) == ("there is nothing to see", False)


@pytest.mark.usefixtures("plug_ins")
def test_a_control_reading_that_cannot_be_attacked_shows_nothing() -> None:
    (cell, *_) = prepared([group("silent", "last-layer-label")])
    assert not isinstance(cell, CompleteRecord)
    assert cell.control is not None
    record, _ = attack(replace(cell, control=replace(cell.control, answers=None)))
    assert record["control"]["outcome"] == "could not be attacked"
    assert "TypeError" in record["reason"]


def test_a_message_that_is_shown_in_one_form_is_not_hidden_in_the_other() -> None:
    """BAFFLE does not replay several clients' local steps; its paper form shows a client the same update."""
    spec = group("baffle", "last-layer-label", {"directions": "5"}, local_epochs=1, batch_size=64, rounds=3)
    cells = prepared([replace(spec, threats=threats(("client",), FORMS))])
    assert [c.record["status"] for c in cells] == ["ok", "n/a"]
    assert controlled(cells) == []


def test_a_simulation_that_sends_gradients_does_not_count_as_private() -> None:
    """What BAFFLE sends when it is simulated in law is no loss difference; its records say nothing of real ones."""
    spec = group("baffle", "last-layer-label", {"law": "true"})
    found = {(r["party"], r["form"]): r["control"]["outcome"] for r in controlled(prepared([spec]))}
    assert found == {(party, form): "leaks labels" for party in ("server", "eavesdropper") for form in FORMS}
