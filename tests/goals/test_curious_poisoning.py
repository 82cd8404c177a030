"""Reconstruction by corrupted clients: its control, what is told of it, and that it counts in no score."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from helpers import malicious

import fedarena as fa
from fedarena.board.threat_filter import ThreatFilter
from fedarena.contracts.inference import Guess, Inference, Progress
from fedarena.contracts.view import View
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.threat import VISIBILITY
from fedarena.goals.curious_poisoning import GOAL, part
from fedarena.goals.prepared import OpenRecord
from fedarena.runs.trial import prepare

FEW: dict[str, Any] = {"rounds": 8, "attack.victims": 3, "model.widths": 32, "batch_size": 1, "clients": 7}


@pytest.fixture(scope="module")
def results() -> fa.Results:
    return fa.run("krum", "spotlight", seeds=[0], form="adaptive", **FEW, **{"attack.knows": "omniscient"})


def test_corrupted_clients_that_read_are_no_party_of_the_ranking() -> None:
    assert VISIBILITY["corrupted-clients"].chooses
    assert not VISIBILITY["corrupted-clients"].ups
    assert "corrupted-clients" not in ThreatFilter().parties
    assert GOAL.parties == ("corrupted-clients",)
    assert not GOAL.of_data


def test_records_have_the_same_attack_without_poison_beside_it(results: fa.Results) -> None:
    for record in results:
        assert (record["party"], record["goal"], record["status"]) == ("corrupted-clients", "curious-poisoning", "ok")
        metrics = record["metrics"]
        assert 0 <= metrics["identified_without_poison"] <= 1
        assert metrics["images"] == 3
        if record["defense"] == "krum":
            assert metrics["identified"] > metrics["identified_without_poison"]
        else:  # of a mean they take their own part off
            assert metrics["identified"] == metrics["identified_without_poison"]


def test_the_table_says_what_is_without_poison(results: fa.Results, capsys: pytest.CaptureFixture[str]) -> None:
    assert "as the corrupted clients" in results.verdict
    results.table()
    printed = " ".join(capsys.readouterr().out.split())
    assert "without poison" in printed
    assert "if the corrupted clients send what the protocol has them send." in printed


def test_a_picture_draws_the_poisoned_rounds_alone(results: fa.Results) -> None:
    assert results.plot() is not None


def test_texts_remain_texts_where_a_half_is_judged() -> None:
    """And are not drawn."""
    spec = malicious.spec("spotlight", "krum", party="corrupted-clients", clients=7)
    (one,) = prepare(replace(spec, problem=replace(spec.problem, corrupted=2)))
    assert isinstance(one, OpenRecord)
    texts = replace(one.challenge, answers=replace(one.challenge.answers, texts=True))
    assert part(texts, slice(0, 1)).answers.texts
    assert GOAL.pictures([], texts) is None


def test_a_federation_without_corrupted_clients_is_refused() -> None:
    with pytest.raises(UserError, match="option 'corrupted' is 0, but spotlight needs corrupted clients"):
        fa.run("krum", "spotlight", seeds=[0], corrupted=0, **FEW)


def test_what_they_know_is_an_option_of_the_attack() -> None:
    with pytest.raises(UserError, match=r"attack\.knows"):
        fa.run("krum", "spotlight", seeds=[0], knows="omniscient", **FEW)


class NoPoison(Inference):
    """It has the goal, and no `craft`."""

    goal = "curious-poisoning"

    def run(self, view: View, rng: Rng, progress: Progress) -> Guess:
        return []


def test_an_attack_without_poison_fails_and_says_so() -> None:
    results = fa.run("krum", NoPoison, seeds=[0], form="adaptive", rounds=3, model="mlp", clients=7, corrupted=2)
    (reason,) = {record["reason"] for record in results}
    assert "has the goal of attacks that poison, but no `craft`" in reason


def test_explain_says_what_they_are_given() -> None:
    facts = fa.explain("median", "spotlight", clients=7)
    assert {party["party"] for party in facts["parties"]} == {"corrupted-clients"}
    assert all("2 corrupted clients send what they like" in party["given"] for party in facts["parties"])
