"""Which client holds a sample: who is asked about, what a guess reaches, and what the server of a federation names."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from fedarena.contracts.inference import Sources
from fedarena.core import registry
from fedarena.core.threat import Form, Party, Threat
from fedarena.federation import compose
from fedarena.federation.spec import GroupSpec
from fedarena.goals import source as goal
from fedarena.goals.challenge import Challenge
from fedarena.goals.metrics.source import prior_source_metrics, source_metrics
from fedarena.goals.prepared import CompleteRecord, OpenRecord, PreparedRecord
from fedarena.problem.problem import build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.records.schema import Record
from fedarena.runs.trial import attack, prepare

CLIENTS, SAMPLES = 5, 20


def spec(clients: int = CLIENTS, partition: str = "few", **training: float) -> ProblemSpec:
    few = {"samples": str(SAMPLES)} if partition == "few" else {}
    return ProblemSpec(
        "digits",
        model="mlp",
        partition=partition,
        clients=clients,
        model_options=registry.find("model", "mlp").parse({"widths": "32"}),
        partition_options=registry.find("partition", partition).parse(few),
        schedule=Schedule(**{"rounds": 12, "batch_size": 10, "lr": 0.2, **training}),
    )


def prepared(
    defense: str = "fedavg", party: Party = "server", form: Form = "paper", problem: ProblemSpec | None = None
) -> PreparedRecord:
    made = compose.parse_attack("source-inference", {"rounds": "6"})
    named = compose.parse_defense(defense)
    (one,) = prepare(GroupSpec(problem or spec(), defense=named, attack=made, threats=(Threat(party, form),), seed=0))
    return one


def challenge(problem: ProblemSpec | None = None) -> Challenge:
    one = prepared(problem=problem)
    assert isinstance(one, OpenRecord), one
    return one.challenge


def reason(defense: str, party: Party, problem: ProblemSpec | None = None) -> str:
    one = prepared(defense, party, problem=problem)
    assert isinstance(one, CompleteRecord)
    assert one.record["status"] == "n/a"
    return one.record["reason"]


# -- who is asked about ---------------------------------------------------------------------------------


def test_as_many_samples_are_asked_about_of_each_client() -> None:
    made, problem = challenge(), build(spec(), 0)
    candidates, holders = made.view.candidates, made.answers
    assert candidates is not None
    assert candidates.clients is None, "the answer is not in the view"
    assert holders.bincount().tolist() == [0, *[SAMPLES] * (CLIENTS - 1)]
    held = {c: {row.numpy().tobytes() for row in problem.inputs(s)} for c, s in enumerate(problem.shards)}
    for x, holder in zip(candidates.x, holders.tolist(), strict=True):
        assert [c for c, rows in held.items() if x.numpy().tobytes() in rows] == [holder]
    assert {o.clients for o in made.view.observations} == {(c,) for c in range(1, CLIENTS)}


def test_the_order_of_candidates_tells_nothing() -> None:
    holders = challenge().answers
    assert not torch.equal(holders, holders.sort().values)


def test_a_sum_and_a_mean_of_others_name_nobody() -> None:
    assert reason("pairwise-masks", "server") == goal.TOGETHER
    assert reason("pairwise-masks", "eavesdropper") == goal.TOGETHER
    assert reason("fedavg", "client") == goal.TOGETHER
    assert reason("fedavg", "server", problem=spec(clients=2)) == goal.TOGETHER


# -- what a guess reaches -------------------------------------------------------------------------------


def judged(values: Tensor, made: Challenge) -> dict[str, float]:
    return goal.GOAL.judge(Sources(values), made) | made.metrics


def test_the_truth_is_certain_and_any_client_s_name_is_chance() -> None:
    made = challenge()
    perfect = judged(made.answers, made)
    assert perfect["source_accuracy"] == 1.0
    assert goal.GOAL.leak(perfect) == 1.0
    assert perfect["samples"] == len(made.answers)
    constant = judged(torch.full_like(made.answers, 3), made)
    assert constant["source_accuracy"] == constant["prior_source_accuracy"] == 1 / (CLIENTS - 1)
    assert constant["source_accuracy_low"] < 1 / (CLIENTS - 1) < constant["source_accuracy_high"]
    assert goal.GOAL.leak(constant) == 0.0
    assert judged(torch.full_like(made.answers, 99), made)["source_accuracy"] == 0.0


def test_an_interval_is_that_of_a_count() -> None:
    from scipy.stats import binomtest

    holders = torch.arange(4).repeat(25)
    named = torch.where(torch.arange(100) < 37, holders, 9)
    metrics = source_metrics(named, holders)
    exact = binomtest(37, 100).proportion_ci(method="exact")
    assert metrics["source_accuracy"] == pytest.approx(0.37)
    assert (metrics["source_accuracy_low"], metrics["source_accuracy_high"]) == pytest.approx((exact.low, exact.high))
    with pytest.raises(ValueError, match="for 100 samples"):
        source_metrics(named[:3], holders)


def test_a_guess_by_classes_names_who_has_the_largest_share() -> None:
    """Client 4 holds class 0 alone, client 6 both classes; class 1 is client 6's, class 0 client 4's."""
    held = {4: torch.tensor([0, 0, 0, 0]), 6: torch.tensor([0, 0, 1, 1])}
    holders, classes = torch.tensor([4, 4, 6, 6]), torch.tensor([0, 0, 0, 1])
    assert prior_source_metrics(holders, classes, held) == {
        "prior_source_accuracy": 0.5,
        "class_source_accuracy": pytest.approx(0.75),
    }
    alike = {4: torch.tensor([0, 1]), 6: torch.tensor([1, 0])}
    assert prior_source_metrics(holders, classes, alike)["class_source_accuracy"] == 0.5
    assert prior_source_metrics(holders, None, held)["class_source_accuracy"] == 0.5


# -- from training to record ----------------------------------------------------------------------------


def record(defense: str, **kwargs: object) -> Record:
    return attack(prepared(defense, **kwargs))[0]  # type: ignore[arg-type]


def test_clients_that_train_longer_are_told_better() -> None:
    """The paper's claim: local models that fit their own samples give away whose they are."""
    short, long = (
        record("fedavg", problem=spec(rounds=40, lr=0.1, local_epochs=epochs))["metrics"] for epochs in (1, 20)
    )
    assert long["source_accuracy_low"] > long["prior_source_accuracy"]
    assert long["source_accuracy"] > short["source_accuracy"]


def test_a_gradient_of_one_batch_tells_too() -> None:
    told = record("fedavg", problem=spec(rounds=40, batch_size=20))["metrics"]
    assert told["source_accuracy_low"] > told["prior_source_accuracy"]


def test_noise_leaves_chance() -> None:
    noisy = replace(spec(rounds=40), schedule=Schedule(rounds=40, batch_size=10, lr=0.05))
    made = record("dp-sgd", problem=noisy)["metrics"]
    assert made["source_accuracy_low"] < made["prior_source_accuracy"] + 0.05
