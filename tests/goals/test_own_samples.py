"""What a curious client knows of its own samples is no leak."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from fedarena.core import registry
from fedarena.core.threat import Party, Threat
from fedarena.federation import compose
from fedarena.federation.spec import GroupSpec, MethodSpec
from fedarena.goals.own_samples import classes_of_others, of_others, why_all_own
from fedarena.problem.problem import Problem, build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.records.schema import Record
from fedarena.runs.engine import run_groups

SPEC = ProblemSpec(
    "digits",
    model="mlp",
    partition="sorted",
    clients=2,
    model_options=registry.find("model", "mlp").parse({"widths": "8"}),
    schedule=Schedule(rounds=6, batch_size=16, lr=0.05),
)
CLIENT, SERVER = Threat("client", "paper"), Threat("server", "paper")


def shared(partition: str, clients: int = 3) -> Problem:
    return build(replace(SPEC, partition=partition, clients=clients), 0)


def record(attack: str, party: Party, partition: str) -> Record:
    method = compose.parse_attack(attack)
    spec = replace(SPEC, partition=partition)
    group = GroupSpec(
        problem=spec, defense=MethodSpec("fedavg"), attack=method, threats=(Threat(party, "paper"),), seed=0
    )
    (one,) = run_groups([group], 1)[0].records
    return one


def test_shards_without_the_attacker_s_samples() -> None:
    apart, alike = shared("iid"), shared("copies")
    assert torch.equal(of_others(apart, CLIENT, 1), apart.shards[1])
    assert not len(of_others(alike, CLIENT, 1))
    assert torch.equal(of_others(alike, SERVER, 1), alike.shards[1])
    overlapping = replace(apart, shards=[apart.shards[0], torch.cat([apart.shards[0][:4], apart.shards[1]])])
    assert torch.equal(of_others(overlapping, CLIENT, 1), apart.shards[1])


def test_the_classes_that_are_left_to_a_client() -> None:
    problem = shared("sorted", 2)
    others = problem.y[problem.shards[1]]
    assert torch.equal(classes_of_others(problem, CLIENT), others)
    assert torch.equal(classes_of_others(problem, SERVER), problem.y)
    assert set(others.tolist()) < set(problem.y.tolist())


@pytest.mark.parametrize(
    ("partition", "clients", "threat", "nothing"),
    [("copies", 3, CLIENT, True), ("copies", 3, SERVER, False), ("iid", 3, CLIENT, False), ("iid", 1, CLIENT, False)],
)
def test_there_is_nothing_to_find_out_where_all_is_one_s_own(
    partition: str, clients: int, threat: Threat, nothing: bool
) -> None:
    assert (why_all_own(shared(partition, clients), threat) is not None) is nothing


@pytest.mark.parametrize("attack", ["joint-membership", "dlg"])
def test_a_client_whose_samples_are_everybody_s_is_not_asked(attack: str) -> None:
    one = record(attack, "client", "copies")
    assert (one["status"], one["scores"]) == ("n/a", {})
    assert "holds every sample" in one["reason"]


def test_a_client_s_blind_guess_of_labels_leaves_out_its_own_classes() -> None:
    """With two clients and sorted shards the other one holds about half of the classes."""
    client, server = (record("last-layer-label", party, "sorted")["metrics"] for party in ("client", "server"))
    assert client["prior_label_accuracy"] > server["prior_label_accuracy"] + 0.2
