"""What `explain` counts on the wires: rows add up, and what later rounds send is shown."""

from __future__ import annotations

from typing import Any

import pytest

from fedarena.core import registry
from fedarena.core.rng import Rng
from fedarena.core.threat import Threat
from fedarena.federation import compose
from fedarena.federation import rounds as federation
from fedarena.federation.spec import GroupSpec
from fedarena.problem.problem import build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.runs import trial
from fedarena.runs.explain import ROUNDS, UNSENT, explain

N = 4 * (64 * 12 + 12 + 12 * 10 + 10)
"""Bytes of W."""


def digits(clients: int = 6, rounds: int = 9, corrupted: int = 0) -> ProblemSpec:
    return ProblemSpec(
        "digits",
        model="mlp",
        partition="iid",
        clients=clients,
        model_options=registry.find("model", "mlp").parse({"widths": "12"}),
        schedule=Schedule(rounds=rounds, batch_size=4),
        corrupted=corrupted,
        assumed_corrupted=corrupted or None,
    )


def told(name: str, clients: int = 6, **options: str) -> dict[str, Any]:
    return explain(digits(clients), compose.parse_defense(name, options), compose.parse_attack("dlg", {}), None)


def rows(found: dict[str, Any], wire: str) -> dict[str, int]:
    return {row["tensor"]: row["bytes"] for row in found["wires"] if row["wire"] == wire}


def test_scalars_that_come_down_later_are_shown() -> None:
    found = told("baffle", downlink="scalars", directions="30")
    assert found["bytes"] == {"down": N + 4, "down, later": 4 * 30 + 4, "up": 4 * 30}
    assert rows(found, "down, later") == {"seed": 4, "differences": 120}
    assert set(told("baffle", directions="30")["bytes"]) == {"down", "up"}


@pytest.mark.parametrize("name", ["fedavg+pairwise-masks", "baffle+pairwise-masks"])
@pytest.mark.parametrize("dropout", ["0", "0.3"])
def test_rows_add_up_to_the_mean_over_the_sampled_clients(name: str, dropout: str) -> None:
    """As a run counts it: those who dropped out have been sent to, and send less."""
    found = told(name, dropout=dropout, threshold="0.5")
    given = build(digits(rounds=ROUNDS), 0)
    made = compose.make_defense(compose.parse_defense(name, {"dropout": dropout, "threshold": "0.5"}), given.task)
    run = federation.run(made, given, Rng(0).child("federation"))
    for wire, mean in (("up", run.bytes_up), ("down", run.bytes_down)):
        assert sum(rows(found, wire).values()) == found["bytes"][wire] == pytest.approx(mean, abs=1.5)
        assert rows(found, wire)["keys and shares"] > 0
    assert (rows(found, "up").get(UNSENT, 0) < 0) == (dropout != "0")
    assert rows(found, "up")["masked"] > 0


def test_the_mean_lacks_the_part_that_a_client_does_not_send() -> None:
    """Simulated in law it is the gradient that crosses, in place of K numbers; and some clients take fewer than K."""
    law = told("baffle", law="true", directions="30")
    assert law["bytes"]["up"] == 4 * 30
    fewer = told("baffle", min_directions="5", directions="30")
    assert 4 * 5 + 2 < fewer["bytes"]["up"] < 4 * 30 + 2
    assert rows(fewer, "up")["differences"] == 4 * 30


@pytest.mark.parametrize(("attack", "given"), [("bank", "the broadcast"), ("mimic", "honest uploads of the round")])
def test_explain_gives_a_late_attack_what_the_whole_run_gives(attack: str, given: str) -> None:
    found = explain(
        digits(rounds=60, corrupted=2), compose.parse_defense("fltrust"), compose.parse_attack(attack, {}), None
    )
    assert all(given in party["given"] for party in found["parties"])


def test_without_a_server_corrupted_nodes_are_given_what_neighbours_send() -> None:
    found = explain(
        digits(rounds=60, corrupted=2), compose.parse_defense("d-sgd"), compose.parse_attack("dissensus", {}), None
    )
    given = [party["given"] for party in found["parties"]]
    assert all("the models of the honest neighbours" in one for one in given)
    assert ["honest neighbours of these send" in one for one in given] == [True, False]
    assert not any("broadcast" in one for one in given)


def test_failed_rounds_are_named() -> None:
    found = [told("fedavg+pairwise-masks", 3, dropout=p, threshold="0.7") for p in ("0", "0.5")]
    said = ["1 of the 2 rounds played gave nothing" in dict(map(tuple, one["facts"])) for one in found]
    assert said == [False, True]


def test_explain_says_what_the_adaptive_form_cannot_replay() -> None:
    facts = dict(map(tuple, told("baffle")["facts"]))
    said = facts["baffle, what the adaptive form does not replay"]
    assert "several local epochs" in said
    assert "float16" in said


@pytest.mark.parametrize(
    ("attack", "model", "batch", "why"),
    [
        ("analytic", "lenet-dlg", 1, "the first layer is convolutional"),
        ("dlg", "mlp", 9, "samples hide behind what was seen of a round, more than max_batch=8"),
    ],
)
def test_explain_gives_the_run_s_reason_for_an_unreadable_view(attack: str, model: str, batch: int, why: str) -> None:
    network = registry.find("model", model).parse({})
    spec = ProblemSpec(
        "digits",
        model=model,
        partition="iid",
        clients=4,
        model_options=network,
        schedule=Schedule(rounds=2, batch_size=batch, lr=0.01),
    )
    defense, method = compose.parse_defense("fedavg"), compose.parse_attack(attack, {"victims": "1"})
    told = explain(spec, defense, method, None)["parties"]
    for threat in (Threat("server", "paper"), Threat("client", "paper")):
        (given,) = (row["given"] for row in told if (row["party"], row["form"]) == (threat.party, threat.form))
        (cell,) = trial.prepare(GroupSpec(spec, defense=defense, attack=method, threats=(threat,), seed=0))
        record, _ = trial.attack(cell)
        assert record["status"] == "n/a"
        assert why in given
        assert given == f"n/a: {record['reason']}"


def test_without_a_server_an_edge_is_shown_and_what_a_neighbour_sees() -> None:
    found = told("d-sgd", graph="ring")
    assert found["bytes"] == {"edge": 2 * N}  # one message, and the node's other edge
    assert sum(rows(found, "edge").values()) == 2 * N
    sees = {party["party"]: party["sees"] for party in found["parties"]}
    assert sees["eavesdropper"] == "one edge, both ways"
    assert sees["client"].startswith("all edges of its own")
    assert sees["server"] == "nothing: there is no server"
    assert found["server"].startswith("there is none")
