"""Reconstruction by a malicious server: what it is asked, what is told of it, and that it counts in no score."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from helpers import malicious
from matplotlib.text import Text

import fedarena as fa
from fedarena.board.threat_filter import ThreatFilter
from fedarena.contracts.active_inference import ActiveInference, Bait, Opportunity
from fedarena.contracts.inference import Guess, Inference, Progress, Reconstruction
from fedarena.contracts.view import View
from fedarena.core.rng import Rng
from fedarena.core.threat import EVERYONE, READERS, VISIBILITY
from fedarena.goals.active_reconstruction import GOAL
from fedarena.goals.prepared import CompleteRecord
from fedarena.runs.trial import prepare

FEW: dict[str, Any] = {"rounds": 12, "attack.victims": 3, "model.widths": 64, "batch_size": 4}


@pytest.fixture(scope="module")
def results() -> fa.Results:
    return fa.run("pairwise-masks", "imprint", clients=4, seeds=[0], form="adaptive", **FEW)


def test_a_malicious_server_is_no_curious_party() -> None:
    assert set(READERS) - set(EVERYONE) == {"malicious-server", "corrupted-clients"}
    assert VISIBILITY["malicious-server"].chooses
    assert not any(VISIBILITY[party].chooses for party in EVERYONE)
    assert "malicious-server" not in ThreatFilter().parties
    assert GOAL.parties == ("malicious-server",)


def test_records_name_the_party_and_hold_the_checks(results: fa.Results) -> None:
    for record in results:
        assert (record["party"], record["goal"], record["status"]) == (
            "malicious-server",
            "active-reconstruction",
            "ok",
        )
        for name in ("loss", "norm", "dead", "alike"):
            assert 0 <= record["metrics"][f"check_{name}"] <= 1
            assert record["metrics"][f"check_{name}_honest"] == 0
        assert record["metrics"]["check_alike"] == 1


def test_the_verdict_is_of_the_malicious_server(results: fa.Results, capsys: pytest.CaptureFixture[str]) -> None:
    assert re.search(r"identifies \d+ % .* of the images as the malicious server, and ", results.verdict)
    results.table()
    printed = " ".join(capsys.readouterr().out.split())
    assert "noticed by" in printed
    assert "of honest rounds it fires in: loss 0 %, norm 0 %, dead 0 %, alike 0 %." in printed


def test_clients_that_are_switched_off_would_notice(capsys: pytest.CaptureFixture[str]) -> None:
    results = fa.run("pairwise-masks", "inconsistent-models", clients=4, seeds=[0], form="adaptive", **FEW)
    alone, summed = (next(r["metrics"] for r in results if r["defense"] == d) for d in ("fedavg", "pairwise-masks"))
    assert (summed["check_dead"], summed["check_dead_others"], summed["check_dead_honest"]) == (0, 1, 0)
    assert (summed["check_alike"], summed["check_alike_others"]) == (1, 0)
    assert "check_dead_others" not in alone, "a server that sees uploads switches nobody off"
    results.table()
    printed = " ".join(capsys.readouterr().out.split())
    assert "by other clients: loss 0 %" in printed
    assert "another model than to the victims" in printed


def test_the_same_run_is_read_by_curious_parties_as_before() -> None:
    """A malicious round leaves the training alone: its model has the accuracy of the honest run."""
    one = fa.run("fedavg", "imprint", seeds=[0], form="adaptive", **FEW)
    other = fa.run("fedavg", "analytic", seeds=[0], party="server", form="adaptive", **FEW)
    (a,), (b,) = ({r["utility"]["clean_accuracy"] for r in records} for records in (one, other))
    assert a == b


class SendsHonest(ActiveInference):
    """It sends the honest model, and answers grey."""

    def craft(self, opportunity: Opportunity, rng: Rng) -> Bait:
        return Bait.for_all(opportunity.message(opportunity.state.params, rng), opportunity)

    def run(self, view: View, rng: Rng, progress: Progress) -> Guess:
        n = [seen.images for seen in view.observations]
        grey = torch.full(view.input_shape, 0.5)
        return [Reconstruction(grey.expand(k, *grey.shape), torch.zeros(k, dtype=torch.long), 0.0, 0) for k in n]


class NoBait(Inference):
    """It has the goal, and no `craft`."""

    goal = "active-reconstruction"

    def run(self, view: View, rng: Rng, progress: Progress) -> Guess:
        return []


def test_a_class_of_one_s_own_is_such_an_attack() -> None:
    results = fa.run("fedavg", SendsHonest, seeds=[0], form="adaptive", rounds=5, model="mlp")
    assert {record["status"] for record in results} == {"ok"}
    assert {record["party"] for record in results} == {"malicious-server"}


def test_an_attack_without_bait_fails_and_says_so() -> None:
    results = fa.run("fedavg", NoBait, seeds=[0], form="adaptive", rounds=5, model="mlp")
    (reason,) = {record["reason"] for record in results}
    assert "has the goal of attacks that shape rounds, but no `craft`" in reason


def test_what_cannot_be_crafted_is_no_result() -> None:
    (one,) = prepare(malicious.spec("imprint", model="lenet-dlg"))
    assert isinstance(one, CompleteRecord)
    assert one.record["status"] == "n/a"


def test_explain_says_that_it_chooses() -> None:
    facts = fa.explain("fedavg", "imprint", **{"model": "mlp"})
    assert {party["party"] for party in facts["parties"]} == {"malicious-server"}
    assert all("of messages that it chooses itself" in party["given"] for party in facts["parties"])


def test_a_picture_draws_the_originals_of_each_column(results: fa.Results) -> None:
    """Behind a sum there are the samples of all clients, and without a defense those of one."""
    texts = [text.get_text() for text in results.plot().findobj(Text)]
    assert texts.count("malicious-server: originals") == 2
