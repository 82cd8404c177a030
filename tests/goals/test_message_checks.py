"""Messages that are empty or unexplained stand in the record, whatever attacks them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from helpers.attacked import asked_of_model
from helpers.degenerate import CLASSES, installed

from fedarena.core import registry
from fedarena.core.threat import Party, Threat
from fedarena.federation import compose
from fedarena.federation.spec import GroupSpec
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.records.schema import Record
from fedarena.runs.trial import attack, prepare


@pytest.fixture(scope="module", autouse=True)
def plug_ins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with installed(tmp_path_factory.mktemp("package")):
        yield


def record(defense: str, party: Party = "server", options: Mapping[str, str] | None = None, **schedule: Any) -> Record:
    """The record of the attack on labels in the adaptive form."""
    made = compose.parse_defense(defense, options)
    loss = dict(compose.defense_cards(defense)[0].usual).get("loss", "cross-entropy")
    rounds = Schedule(**{"rounds": 8, "batch_size": 4, "lr": 0.1, "loss": loss, **schedule})
    model = registry.find("model", "mlp").parse({"widths": "16", **asked_of_model(defense)})
    problem = ProblemSpec("digits", model="mlp", partition="iid", clients=4, model_options=model, schedule=rounds)
    method = compose.parse_attack("last-layer-label")
    group = GroupSpec(problem, defense=made, attack=method, threats=(Threat(party, "adaptive"),), seed=0)
    return attack(prepare(group)[0])[0]


@pytest.mark.parametrize("party", ["server", "eavesdropper"])
@pytest.mark.parametrize(
    ("defense", "said"),
    [
        ("key-inside", "a part"),
        ("rare-uploads", "a part"),  # zeros in most rounds
        ("silent-when-few", "nothing of samples"),
        ("silent-when-few+pairwise-masks", "nothing of samples"),
    ],
)
def test_what_is_wrong_with_a_message_is_in_the_record(defense: str, said: str, party: Party) -> None:
    found = record(defense, party)
    assert (found["status"], found["control"]["said"]) == ("ok", said)
    if said == "a part":
        assert found["control"]["finding"].startswith("the client step, played on the true samples, is ")


def test_what_a_defense_accounts_for_in_words_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CLASSES["key-inside"], "undisclosed", "add numbers of their own", raising=False)
    assert "control" not in record("key-inside")


@pytest.mark.parametrize(("declared", "explained"), [(0.001, False), (3.0, True)])
def test_declared_noise_accounts_for_as_much_as_it_is(
    declared: float, explained: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CLASSES["key-inside"], "noise_std", declared)
    assert ("control" not in record("key-inside")) == explained


@pytest.mark.parametrize("defense", [*registry.registries()["defense"].names(), "krum", "pairwise-masks"])
def test_no_shipped_protocol_sends_an_empty_or_unexplained_message(defense: str) -> None:
    assert "control" not in record(defense)


@pytest.mark.parametrize(
    ("defense", "options"),
    [("dp-rsa", {"epsilon": "none"}), ("baffle", {"precision": "float16"}), ("dbcl", {"hash": "uniform"})],
)
def test_no_option_makes_a_message_unexplained(defense: str, options: dict[str, str]) -> None:
    assert "control" not in record(defense, options=options)


@pytest.mark.parametrize(
    "schedule", [{"local_epochs": 2}, {"client_optimizer": "momentum"}, {"participation": 0.5}, {"batch_size": 1}]
)
def test_no_schedule_makes_a_message_unexplained(schedule: dict[str, Any]) -> None:
    assert "control" not in record("fedavg", **schedule)
