"""Membership in a client's data set: who is asked about, what is shown, and whose AUC counts."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch
from helpers.degenerate import installed
from torch import Tensor

from fedarena.contracts.inference import Scores
from fedarena.contracts.observation import Reading
from fedarena.contracts.view import View
from fedarena.core import registry
from fedarena.core.rng import Rng
from fedarena.core.threat import Form, Party, Threat
from fedarena.federation import compose
from fedarena.federation.spec import GroupSpec
from fedarena.goals import client_membership as goal
from fedarena.goals.asked_clients import MOST_CLIENTS, MOST_SAMPLES
from fedarena.goals.challenge import Challenge, NoChallenge
from fedarena.goals.prepared import CompleteRecord, OpenRecord, PreparedRecord
from fedarena.problem.problem import Problem, build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec, usual_problem
from fedarena.records.schema import Record
from fedarena.runs.trial import attack, prepare

SAMPLES, CLIENTS, ROUNDS = 20, 5, 6
SETTINGS = {"training": {"rounds": "120"}, "model": {"widths": "32"}, "partition": {"samples": str(SAMPLES)}}


def spec(clients: int = CLIENTS, samples: int = SAMPLES, **training: float) -> ProblemSpec:
    return ProblemSpec(
        "digits",
        model="mlp",
        partition="few",
        clients=clients,
        model_options=registry.find("model", "mlp").parse({"widths": "16"}),
        partition_options=registry.find("partition", "few").parse({"samples": str(samples)}),
        schedule=Schedule(**{"rounds": 12, "batch_size": 16, "lr": 0.2, **training}),
    )


def prepared(
    defense: str = "fedavg",
    party: Party = "server",
    form: Form = "adaptive",
    problem: ProblemSpec | None = None,
    seed: int = 0,
    name: str = "upload-regression",
) -> list[PreparedRecord]:
    made = compose.parse_attack(name, {"rounds": str(ROUNDS)})
    return prepare(
        GroupSpec(
            problem or spec(),
            defense=compose.parse_defense(defense),
            attack=made,
            threats=(Threat(party, form),),
            seed=seed,
        )
    )


def challenge(*args: str, **kwargs: object) -> Challenge:
    (one,) = prepared(*args, **kwargs)  # type: ignore[arg-type]
    assert isinstance(one, OpenRecord), one
    return one.challenge


@cache
def usual() -> Challenge:
    return challenge()


def view(*args: str, **kwargs: object) -> View:
    return challenge(*args, **kwargs).view


@cache
def built() -> Problem:
    return build(spec(), 0)


def keys(x: Tensor) -> list[bytes]:
    return [row.numpy().tobytes() for row in x]


# -- who is asked about ---------------------------------------------------------------------------------


def test_half_of_the_candidates_are_held_by_the_client_that_is_named() -> None:
    made = usual()
    candidates, truth = made.view.candidates, made.answers
    assert candidates is not None
    assert candidates.clients is not None
    assert torch.equal(candidates.clients, truth.clients)
    for client in range(1, CLIENTS):
        held = keys(built().inputs(built().shards[client]))
        asked = truth.clients == client
        assert int(asked.sum()) == 2 * int((asked & truth.members).sum()) == 2 * SAMPLES
        for key, member in zip(keys(candidates.x[asked]), truth.members[asked].tolist(), strict=True):
            assert (key in held) == member
    assert 0 not in truth.clients.tolist()


def test_no_sample_is_a_candidate_twice_and_classes_tell_nothing() -> None:
    made = usual()
    candidates, truth = made.view.candidates, made.answers
    assert candidates is not None
    assert len(set(keys(candidates.x))) == len(candidates.x)
    inside, outside = (candidates.y[which].bincount(minlength=10) for which in (truth.members, ~truth.members))
    assert int((inside - outside).abs().sum()) <= 0.3 * len(truth.members)


def test_the_question_does_not_depend_on_the_party() -> None:
    server, eavesdropper, client = (view(party=party).candidates for party in ("server", "eavesdropper", "client"))
    assert server is not None
    assert eavesdropper is not None
    assert client is not None
    assert torch.equal(server.x, eavesdropper.x)
    assert torch.equal(server.x, client.x)


def test_at_most_ten_clients_are_asked_about_with_a_hundred_samples_each() -> None:
    """Of two clients, so that there are outsiders for more."""
    assert len(challenge(problem=spec(clients=13, rounds=3)).answers.clients.unique()) == MOST_CLIENTS
    truth = challenge(problem=spec(clients=3, samples=MOST_SAMPLES + 20, rounds=3)).answers
    assert int(truth.clients[truth.members].bincount().max()) == MOST_SAMPLES


def test_a_client_alone_is_asked_about_itself() -> None:
    assert challenge(problem=spec(clients=1)).answers.clients.unique().tolist() == [0]


def test_all_folds_have_as_many_members_of_each_client() -> None:
    truth = usual().answers
    for client in truth.clients.unique().tolist():
        of_client = truth.clients == client
        for kind in (truth.members, ~truth.members):
            counts = [int((of_client & kind & (truth.folds == fold)).sum()) for fold in range(goal.FOLDS)]
            assert counts == [SAMPLES // goal.FOLDS] * goal.FOLDS


# -- what is shown --------------------------------------------------------------------------------------


def test_every_upload_of_every_client_is_shown_once() -> None:
    seen = [(o.round, o.clients) for o in view().observations]
    rounds = sorted({t for t, _ in seen})
    assert len(rounds) == ROUNDS
    assert seen == [(t, (c,)) for t in rounds for c in range(1, CLIENTS)]


def test_the_uploads_are_those_of_their_clients() -> None:
    """A client's own samples give its upload, and another client's do not."""
    made = view(problem=spec(batch_size=SAMPLES))  # the whole shard is the batch
    for o in made.observations[:4]:
        errors = {}
        for client in range(1, CLIENTS):
            shard = built().shards[client]
            labels = torch.nn.functional.one_hot(built().y[shard], 10).float()
            given = o.simulate(built().inputs(shard), labels)
            errors[client] = max(float((given[n] - o.target[n]).abs().max()) for n in o.target)
        assert (min(errors, key=lambda c: errors[c]),) == o.clients
        assert errors[o.clients[0]] < 1e-6


def test_a_sum_is_shown_once_a_round() -> None:
    seen = view("pairwise-masks").observations
    assert len(seen) == ROUNDS
    assert all(o.clients == tuple(range(CLIENTS)) for o in seen)


def test_a_client_sees_the_mean_of_the_others() -> None:
    seen = view(party="client").observations
    assert [o.clients for o in seen] == [tuple(range(1, CLIENTS))] * ROUNDS


def test_clients_that_were_not_sampled_are_not_shown() -> None:
    made = view(problem=spec(clients=8, participation=0.5, rounds=20))
    candidates = made.candidates
    assert candidates is not None
    assert candidates.clients is not None
    assert {*candidates.clients.tolist()} == {c for o in made.observations for c in o.clients} - {0}


def test_the_rounds_are_drawn_by_the_seed() -> None:
    drawn = [tuple(sorted({o.round for o in view(seed=seed).observations})) for seed in range(4)]
    assert len(set(drawn)) > 1
    assert drawn == [tuple(sorted({o.round for o in view(seed=seed).observations})) for seed in range(4)]


def test_uploads_of_clients_that_nobody_asks_about_are_no_question() -> None:
    """Krum's step is one client's upload, whoever that is."""
    one, *others = prepared("krum", "client", problem=spec(clients=13, rounds=20))
    assert not others
    if isinstance(one, OpenRecord):
        asked = {*one.challenge.answers.clients.tolist()}
        assert asked <= {c for o in one.challenge.view.observations for c in o.clients}
    made = replace(usual().view.observations[0], clients=(99,))
    finished, transcript = None, Threat("server", "adaptive")
    none = goal.GOAL._challenge(finished, transcript, [1, 2], Reading("upload", (made,)), None)  # type: ignore[arg-type]
    assert isinstance(none, NoChallenge)
    assert none.reason == "none of the clients that are asked about was seen"


def test_a_rule_that_hides_the_mean_is_not_applicable_to_a_client() -> None:
    (one,) = prepared("median", "client")
    assert isinstance(one, CompleteRecord)
    assert one.record["status"] == "n/a"
    assert "no strength of the rule" in one.record["reason"]


# -- whose AUC counts -----------------------------------------------------------------------------------


def judged(values: Tensor, made: Challenge | None = None) -> dict[str, float]:
    return goal.GOAL.judge([Scores(values)], made or usual())


def test_perfect_scores_are_certain_and_equal_ones_are_chance() -> None:
    truth = usual().answers
    perfect = judged(truth.members.double())
    assert perfect["auc"] == 1.0
    assert perfect["candidates"] == len(truth.members)
    assert "auc_all_clients" not in perfect
    equal = judged(torch.zeros(len(truth.members)))
    assert equal["auc"] == 0.5
    assert equal["auc_low"] <= 0.5 <= equal["auc_high"]
    assert goal.GOAL.leak(equal) == 0.0


def test_a_client_that_is_given_away_counts_alone() -> None:
    made = usual()
    truth = made.answers
    noise = torch.rand(len(truth.members), generator=Rng(3).torch(), dtype=torch.float64)
    given_away = torch.where(truth.clients == 3, truth.members.double(), noise)
    metrics = judged(given_away, made)
    assert metrics["auc"] == 1.0
    assert metrics["auc_low"] > metrics["auc_all_clients"]
    assert 0.5 < metrics["auc_all_clients"] < 0.8
    assert goal.GOAL.leak(metrics) == 1.0


def test_luck_does_not_choose_a_client() -> None:
    """Among clients of which nothing is told, the one that is told best is told no better than others."""
    made, rng = usual(), Rng(5)
    drawn = [torch.rand(len(made.answers.members), generator=rng.child(i).torch()) for i in range(200)]
    alone = sum("auc_all_clients" in judged(values, made) for values in drawn)
    assert alone <= 10  # 5 %


def test_answers_that_cannot_be_judged_are_errors() -> None:
    with pytest.raises(ValueError, match="1 lists of scores for one list of"):
        judged(torch.zeros(3))
    with pytest.raises(ValueError, match="2 lists of scores"):
        goal.GOAL.judge([Scores(torch.zeros(160))] * 2, usual())
    assert judged(torch.full((len(usual().answers.members),), torch.nan))["auc"] == 0.5


# -- from training to record ----------------------------------------------------------------------------


def record(defense: str, **kwargs: object) -> Record:
    (one,) = prepared(defense, **kwargs)  # type: ignore[arg-type]
    return attack(one)[0]


def test_the_regression_tells_what_the_published_statistic_does_not() -> None:
    many = spec(rounds=60)
    regression, cosine = (record("fedavg", problem=many, name=n)["metrics"] for n in ("upload-regression", "fedmia"))
    assert regression["auc_low"] > 0.8
    assert regression["auc_low"] > cosine["auc_high"]


@pytest.mark.parametrize(("name", "clients"), [("rare-uploads", 5), ("rare-silence", 5), ("given-away", 10)])
def test_a_protocol_that_protects_most_rounds_or_clients_protects_nobody(
    name: str, clients: int, tmp_path: Path
) -> None:
    with installed(tmp_path / "package"):
        cards = registry.find("attack", "upload-regression"), registry.find("defense", name)
        problem = usual_problem({"clients": str(clients)}, SETTINGS, cards)
        threats = (Threat("server", "adaptive"),)
        method = compose.parse_attack("upload-regression", {"rounds": "100"})
        defense = compose.parse_defense(name)
        (one,) = prepare(GroupSpec(problem, defense=defense, attack=method, threats=threats, seed=0))
        assert attack(one)[0]["scores"]["privacy"] < 0.3


def test_noise_of_differential_privacy_withstands_it() -> None:
    many = spec(rounds=60)
    assert record("dp-sgd", problem=many)["metrics"]["auc"] < 0.65


def test_candidates_that_no_client_holds_are_not_told_apart() -> None:
    """With other clients' samples in place of the members the attack finds nothing."""
    made = challenge(problem=spec(rounds=60))
    candidates, truth = made.view.candidates, made.answers
    assert candidates is not None
    assert candidates.clients is not None
    moved = replace(candidates, clients=candidates.clients % (CLIENTS - 1) + 1)
    from fedarena.attacks.membership.cards.upload_regression import Options
    from fedarena.attacks.membership.upload_regression import UploadRegression

    answer = UploadRegression(Options())(replace(made.view, candidates=moved), Rng(0))
    assert isinstance(answer, list)
    metrics = goal.GOAL.judge(answer, replace(made, answers=replace(truth, clients=moved.clients)))
    assert metrics["auc_low"] < 0.5 < metrics["auc_high"]
