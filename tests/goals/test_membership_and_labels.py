"""Attacks after members and labels, from training to record: judged, repeatable, every option counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor

from fedarena import goals
from fedarena.contracts.inference import Inference, Labels, Scores
from fedarena.core import registry
from fedarena.core.files import canonical
from fedarena.core.rng import Rng
from fedarena.core.threat import FORMS, PARTIES, Form, Party, Threat
from fedarena.federation import compose
from fedarena.federation.spec import GroupSpec, threats
from fedarena.goals import membership as goal
from fedarena.goals.candidates import draw_questions
from fedarena.problem.problem import Problem
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.records.schema import VOLATILE
from fedarena.runs import trial
from fedarena.runs.engine import run_groups

MEMBERSHIP = ("joint-membership", "marginal-membership")
NEW = (*MEMBERSHIP, "last-layer-label")


def groups(
    attack: str, defense: str = "fedavg", seed: int = 0, parties: tuple[Party, ...] = PARTIES,
    forms: tuple[Form, ...] = FORMS, model: str = "mlp", clients: int = 2, **changes: Any,
) -> list[GroupSpec]:  # fmt: skip
    """A run, beside FedAvg's."""
    options = {
        name: changes.pop(name) for name in ("rounds", "scale", "evidence", "statistic", "ridge") if name in changes
    }
    schedule = Schedule(**{"rounds": 12, "batch_size": 4, **changes})
    method = registry.find("model", model).parse({"widths": "32"} if model == "mlp" else {})
    problem = ProblemSpec(
        "digits", model=model, partition="iid", clients=clients, model_options=method, schedule=schedule
    )
    made = compose.parse_attack(attack, {"rounds": "8", **options})
    names = dict.fromkeys((defense, "fedavg"))
    return [
        GroupSpec(problem, defense=compose.parse_defense(n), attack=made, threats=threats(parties, forms), seed=seed)
        for n in names
    ]


def records(*args: Any, **changes: Any) -> list[dict[str, Any]]:
    return run_groups(groups(*args, **changes), 1)[0].records


def server(attack: str, defense: str = "fedavg", **changes: Any) -> dict[str, Any]:
    (record,) = records(attack, defense, parties=("server",), forms=("adaptive",), **changes)
    return record


@cache
def unruled(base: str, form: Form) -> dict[str, Any]:
    """The first record of a protocol under its own mean, read by one of five clients."""
    more: dict[str, Any] = {"loss": "mse"} if base == "pbpfl" else {}
    made = groups("last-layer-label", base, parties=("client",), forms=(form,), **more)
    problem = replace(made[0].problem, clients=5, assumed_corrupted=0)
    return run_groups([replace(g, problem=problem) for g in made], 1)[0].records[0]


def stable(record: dict[str, Any]) -> str:
    kept = {name: value for name, value in record.items() if name not in ("environment", "cost")}
    assert {"environment", "cost", "sum"} == {path.partition(".")[0] for path in VOLATILE}
    return canonical(kept)


@pytest.mark.parametrize("defense", ["fedavg", "dbcl", "dp-sgd"])
@pytest.mark.parametrize("attack", NEW)
def test_every_party_and_form_is_judged(attack: str, defense: str) -> None:
    result = run_groups(groups(attack, defense), 1)[0]
    assert {(r["party"], r["form"]) for r in result.records} == {(p, f) for p in PARTIES for f in FORMS}
    assert not result.galleries
    for r in result.records:
        assert r["status"] == "ok", r["reason"]
        names = ("auc", "advantage", "auc_low", "auc_high", "candidates")
        for name in names if attack in MEMBERSHIP else ("label_accuracy", "prior_label_accuracy", "labels"):
            assert name in r["metrics"]
        assert "prior_mean_ssim" not in r["metrics"]
        assert r["scores"] == goals.find(r["goal"]).privacy(r["metrics"])


@pytest.mark.parametrize("attack", NEW)
def test_twice_and_with_two_workers_the_same_records(attack: str) -> None:
    one, again, two = (run_groups(groups(attack), jobs)[0].records for jobs in (1, 1, 2))
    assert [stable(r) for r in one] == [stable(r) for r in again] == [stable(r) for r in two]


def test_local_epochs_put_a_client_s_whole_data_behind_one_upload() -> None:
    made = server("joint-membership", rounds="1", clients=8, local_epochs=1, batch_size=40)
    assert made["status"] == "ok", made["reason"]
    assert made["metrics"]["candidates"] / 2 == 160  # four batches of a shard of 179
    labels = server("last-layer-label", local_epochs=1, batch_size=100)
    assert labels["metrics"]["prior_label_accuracy"] > 0.9  # so that reading many labels is no leak
    assert labels["scores"]["leak"] < 0.5


CHANGES: dict[str, list[dict[str, str]]] = {
    "joint-membership": [{"rounds": "5"}],
    "marginal-membership": [{"rounds": "5"}, {"scale": "true"}],
    "last-layer-label": [{"rounds": "5"}, {"evidence": "rows"}],
    "fedmia": [{"rounds": "5"}, {"statistic": "avg-cosine"}],
    "upload-regression": [{"rounds": "5"}, {"ridge": "1"}],
}


@pytest.mark.parametrize(("attack", "change"), [(a, c) for a, some in CHANGES.items() for c in some])
def test_every_option_acts(attack: str, change: dict[str, str]) -> None:
    given = {name for some in CHANGES[attack] for name in some}
    assert given == {f.name for f in fields(registry.find("attack", attack).options)}
    clients = 4 if attack == "fedmia" else 2  # it compares with two others
    usual, other = (server(attack, clients=clients, batch_size=16, **settings)["metrics"] for settings in ({}, change))
    assert usual != other


def test_samples_that_were_nowhere_are_told_from_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """The members are swapped for held-out samples before the attack sees them: nothing is left to tell."""

    def nowhere(problem: Problem, held: Any, outsiders: Tensor, truths: Sequence[Any], rng: Rng) -> Any:
        order = outsiders[torch.randperm(len(outsiders), generator=rng.child("nowhere").torch())]
        stand_ins, others = order[: len(order) // 2], order[len(order) // 2 :]
        x, y = problem.x_test[stand_ins].float() / problem.scale, problem.y_test[stand_ins]
        swapped = []
        for i, (clients, (_, labels)) in enumerate(truths):
            some = torch.randperm(len(y), generator=rng.child("swap", i).torch())[: len(labels)]
            swapped.append((clients, (x[some], y[some])))
        return draw_questions(problem, dict.fromkeys(held, (x, y)), others, swapped, rng)

    many = {"rounds": "100"}
    real = [trial.prepare(groups("joint-membership", seed=s, **many)[0])[0] for s in range(3)]
    assert all(trial.attack(cell)[0]["metrics"]["auc_low"] > 0.5 for cell in real)
    monkeypatch.setattr(goal, "draw_questions", nowhere)
    null = [trial.prepare(groups("joint-membership", seed=s, **many)[0])[0] for s in range(10)]
    found = [trial.attack(cell)[0]["metrics"]["auc"] for cell in null]
    assert abs(sum(found) / len(found) - 0.5) < 0.05


# -- what third parties may do -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ([], "returned a list of 0, allowed: a list of 8 Scores"),
        ([Scores(torch.zeros(3))] * 8, "returned a tensor [3] as values, allowed: a list of 8 Scores"),
        ([Labels(torch.zeros(4))] * 8, "returned a list of 8 (a Labels), allowed: a list of 8 Scores"),
        (None, "returned None, allowed: a list of 8 Scores"),
    ],
)
def test_an_answer_that_cannot_be_judged_is_a_failed_record(
    answer: Any, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fedarena.attacks.membership.helpers.candidate_scores import Compare

    monkeypatch.setattr(Compare, "run", lambda self, view, rng, progress: answer)
    made = server("joint-membership")
    assert made["status"] == "failed"
    assert said in made["reason"]
    assert made["scores"] == {}


def test_an_attack_is_after_reconstructions_unless_it_says_otherwise() -> None:
    assert Inference.goal == "reconstruction"
    assert registry.find("attack", "dlg").load().goal == "reconstruction"


# -- scores --------------------------------------------------------------------------------------------


def test_leak_is_the_advantage_over_guessing() -> None:
    assert goals.find("membership").privacy({"auc": 0.9, "advantage": 0.8}) == pytest.approx(
        {"leak": 0.8, "privacy": 0.2}
    )
    assert goals.find("membership").privacy({"auc": 0.4, "advantage": -0.2}) == {"leak": 0, "privacy": 1}
    told = {"label_accuracy": 0.7, "prior_label_accuracy": 0.4}
    assert goals.find("labels").privacy(told) == pytest.approx({"leak": 0.5, "privacy": 0.5})
    assert goals.find("labels").privacy({**told, "label_accuracy": 0.1})["leak"] == 0
    assert goals.find("labels").privacy({"label_accuracy": 1.0, "prior_label_accuracy": 1.0})["leak"] == 0
    identified = {"recovered": 0.25, "identified": 0.505, "identified_chance": 0.01}
    assert goals.find("reconstruction").privacy(identified)["leak"] == pytest.approx(0.5)
    assert goals.find("reconstruction").privacy({**identified, "identified": 0.0})["leak"] == 0
    old = {"recovered": 0.25, "label_accuracy": 1.0}  # schema 7 and earlier
    assert goals.find("reconstruction").privacy(old)["leak"] == 0.25


def test_random_batches_are_judged_by_the_samples_they_held() -> None:
    """A Poisson batch of one expected sample may hold none, or several."""
    problem = replace(groups("last-layer-label")[0].problem, schedule=Schedule(rounds=12, batch_size=1))
    attack = compose.parse_attack("analytic", {"victims": "12"})
    names, whom = ("dp-sgd", "fedavg"), (Threat("server", "paper"),)
    made = [
        GroupSpec(problem, defense=compose.parse_defense(name), attack=attack, threats=whom, seed=0) for name in names
    ]
    (record,) = run_groups(made, 1)[0].records
    assert record["status"] == "ok", record["reason"]
    held = [len(y) for _, y in trial.prepare(made[0])[0].challenge.answers.truths]  # type: ignore[union-attr]
    assert 0 in held
    assert max(held) > 1
    assert record["metrics"]["images"] == sum(min(n, 1) for n in held)  # one sample is asked for in each


@pytest.mark.parametrize(("base", "form"), [("fedavg", "adaptive"), ("dbcl", "adaptive"), ("baffle", "adaptive"),
                                            ("pbpfl", "adaptive"), ("pbpfl", "paper")])  # fmt: skip
@pytest.mark.parametrize("rule", ["trimmed-mean", "nnm+krum"])
def test_a_rule_that_takes_the_mean_hides_no_more_than_the_mean(base: str, form: Form, rule: str) -> None:
    """As most rules do that expect nobody to be corrupted; as soon as they expect one they hide it."""
    more: dict[str, Any] = {"loss": "mse"} if base == "pbpfl" else {}
    made = groups("last-layer-label", f"{base}+{rule}", parties=("client",), forms=(form,), **more)
    problem = replace(made[0].problem, clients=5, assumed_corrupted=0)
    (ruled, *_) = run_groups([replace(g, problem=problem) for g in made], 1)[0].records  # readings of one estimate
    bare = unruled(base, form)
    assert ruled["status"] == bare["status"]
    assert ruled["scores"] == pytest.approx(bare["scores"], abs=0.05)
    assert ruled["reason"] == bare["reason"]
    wary = replace(problem, assumed_corrupted=1)
    (hidden,) = run_groups([replace(g, problem=wary) for g in made], 1)[0].records
    assert hidden["status"] == "n/a"
    assert "consecutive broadcasts show what the server's rule made of the uploads" in hidden["reason"]


@pytest.mark.parametrize(("base", "form"), [("fedavg", "paper"), ("fedavg", "adaptive"), ("dbcl", "adaptive"),
                                            ("baffle", "adaptive"), ("pbpfl", "adaptive")])  # fmt: skip
def test_krum_gives_every_client_what_one_other_sent(base: str, form: Form) -> None:
    """In as many rounds as it picks another's upload; the mean of several would tell of each client less."""
    more: dict[str, Any] = {"loss": "mse"} if base == "pbpfl" else {}
    made = groups("last-layer-label", f"{base}+krum", parties=("client",), forms=(form,), **more)
    problem = replace(made[0].problem, clients=5, assumed_corrupted=1)
    (record, *_) = run_groups([replace(g, problem=problem) for g in made], 1)[0].records
    assert record["status"] == "ok", record["reason"]
    batches, left = divmod(record["metrics"]["labels"], problem.schedule.batch_size)
    assert left == 0
    assert 0 < batches <= 8  # the rounds attacked; the mean of the four others would be four batches in each
    assert record["metrics"]["label_accuracy"] > record["metrics"]["prior_label_accuracy"] + 0.1
