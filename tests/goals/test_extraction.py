"""Stolen models: the judge on known answers, and the goal from training to record."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fedarena import goals
from fedarena.attacks.extraction.model_extraction import ModelExtractionAttack
from fedarena.contracts.defense import Broadcast, State
from fedarena.contracts.inference import Extraction, Labels, Watch
from fedarena.contracts.observation import Disclosure
from fedarena.contracts.transcript import Seen
from fedarena.core import registry
from fedarena.core.files import canonical
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, flatten, scale
from fedarena.core.threat import FORMS, PARTIES, NotApplicable, Threat
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.federation import compose
from fedarena.federation.spec import GroupSpec, threats
from fedarena.goals.extraction import last_seen
from fedarena.goals.metrics.extraction import Exam, agreement, constant_agreement, extraction_metrics, secret_metrics
from fedarena.problem.loss import Criterion
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.problem.task import Task
from fedarena.records.schema import VOLATILE
from fedarena.runs.engine import run_groups

CLASSES = Criterion("cross-entropy", 3)
NUMBERS = Criterion("regression", 0)


# -- the judge -----------------------------------------------------------------------------------------


def logits(*classes: int) -> Tensor:
    return torch.eye(3)[list(classes)]


def test_classes_agree_where_the_same_one_is_predicted() -> None:
    server = logits(0, 1, 2, 2)
    assert agreement(CLASSES, 5 * server - 7, server) == 1.0
    assert agreement(CLASSES, logits(0, 1, 0, 1), server) == 0.5
    assert constant_agreement(CLASSES, server) == 0.5


def test_outputs_that_are_not_finite_agree_with_nothing() -> None:
    server = logits(0, 0, 0, 0)
    broken = server.clone()
    broken[0, 1], broken[1, 0] = torch.nan, torch.inf
    assert agreement(CLASSES, broken, server) == 0.5


def test_numbers_agree_by_the_variance_that_is_explained() -> None:
    server = torch.tensor([[0.0], [1.0], [2.0], [3.0]])
    assert agreement(NUMBERS, server, server) == 1.0
    assert agreement(NUMBERS, server + 0.5, server) == pytest.approx(1 - 4 * 0.25 / 5)
    assert agreement(NUMBERS, -server, server) == 0.0
    assert agreement(NUMBERS, server * torch.nan, server) == 0.0
    assert constant_agreement(NUMBERS, server) == 0.0


def test_a_constant_server_gives_away_nothing_that_a_guess_lacks() -> None:
    server = torch.ones(4, 1)
    assert agreement(NUMBERS, server, server) == constant_agreement(NUMBERS, server) == 1.0
    assert agreement(NUMBERS, torch.zeros(4, 1), server) == 0.0


def test_grades_of_one_output_are_classes() -> None:
    grades = Criterion("regression", 3)
    assert agreement(grades, torch.tensor([[0.1], [0.6], [0.9]]), torch.tensor([[0.0], [0.5], [0.5]])) == 2 / 3


def dense(activation: nn.Module) -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 6), activation, nn.Linear(6, 3))


def exam(activation: nn.Module, *models: Tensors, **schedule: Any) -> Exam:
    g = torch.Generator().manual_seed(0)
    task = Task(dense(activation), input_shape=(4,), n_classes=3, sizes=(8, 8), schedule=Schedule(**schedule))
    x, y = torch.rand(50, 4, generator=g), torch.randint(0, 3, (50,), generator=g)
    return Exam(task, (255 * x).byte(), y, 255.0, models)


def parameters(seed: int) -> Tensors:
    g = torch.Generator().manual_seed(seed)
    return {name: torch.randn(p.shape, generator=g) for name, p in dense(nn.ReLU()).named_parameters()}


def rescaled(params: Tensors) -> Tensors:
    """The same function of a ReLU network: hidden units times r, what they feed divided by it."""
    r = torch.arange(1, 7) / 2
    return {
        **params,
        "0.weight": params["0.weight"] * r[:, None],
        "0.bias": params["0.bias"] * r,
        "2.weight": params["2.weight"] / r,
    }


def test_the_model_itself_is_the_model() -> None:
    server = parameters(0)
    found = extraction_metrics([Extraction(server)], exam(nn.ReLU(), server))
    assert found["agreement"] == found["final_agreement"] == found["models"] == 1.0
    assert found["parameter_cosine"] == pytest.approx(1.0)
    assert found["output_error"] == 0.0
    assert found["stolen_accuracy"] == found["server_accuracy"] < 1.0
    assert 1 / 3 <= found["prior_agreement"] < 1.0


def test_the_order_of_names_does_not_matter() -> None:
    server = parameters(0)
    turned = Extraction(dict(reversed(server.items())))
    assert extraction_metrics([turned], exam(nn.ReLU(), server))["parameter_cosine"] == pytest.approx(1.0)


def test_a_rescaled_network_is_the_same_one_where_the_activation_allows_it() -> None:
    server = parameters(0)
    stolen = Extraction(rescaled(server))
    relu = extraction_metrics([stolen], exam(nn.ReLU(), server))
    assert relu["parameter_cosine"] == pytest.approx(1.0)
    assert relu["agreement"] == 1.0
    assert relu["output_error"] < 1e-6
    sigmoid = extraction_metrics([stolen], exam(nn.Sigmoid(), server))
    raw = torch.nn.functional.cosine_similarity(flatten(server), flatten(stolen.params), 0)
    assert sigmoid["parameter_cosine"] == pytest.approx(float(raw), abs=1e-6)
    assert sigmoid["parameter_cosine"] < 0.99
    assert sigmoid["output_error"] > 0.01


def test_the_error_of_outputs_is_relative_to_the_server_s() -> None:
    server = parameters(0)
    stolen = {**server, **{name: 1.25 * server[name] for name in ("2.weight", "2.bias")}}
    assert extraction_metrics([Extraction(stolen)], exam(nn.ReLU(), server))["output_error"] == pytest.approx(0.25)


def test_rounds_are_averaged_and_the_last_one_told_apart() -> None:
    server, other = parameters(0), parameters(1)
    held = exam(nn.ReLU(), server, server)
    last_wrong = extraction_metrics([Extraction(server), Extraction(other)], held)
    last_right = extraction_metrics([Extraction(other), Extraction(server)], held)
    assert last_wrong["agreement"] == pytest.approx(last_right["agreement"])
    assert last_wrong["agreement"] == pytest.approx((1 + last_wrong["final_agreement"]) / 2)
    assert last_wrong["final_agreement"] < last_right["final_agreement"] == 1.0
    assert last_right["models"] == 2.0


def test_a_model_of_zeros_is_told_without_dividing_by_zero() -> None:
    server = parameters(0)
    found = extraction_metrics([Extraction(scale(0.0, server))], exam(nn.ReLU(), server))
    assert found["parameter_cosine"] == 0.0
    assert found["output_error"] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ([], "0 models for 1 rounds"),
        ([Extraction({"0.weight": torch.zeros(6, 4)})], "parameters of shapes"),
        ([Extraction({n: t.T for n, t in parameters(0).items() if t.dim() == 2})], "parameters of shapes"),
    ],
)
def test_answers_that_are_no_such_models_are_refused(answers: list[Extraction], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        extraction_metrics(answers, exam(nn.ReLU(), parameters(0)))


def test_secrets_are_judged_by_their_relative_error() -> None:
    truths = [{"gamma": torch.tensor(2.0), "mask.0": torch.ones(4)}, {"gamma": torch.tensor(-1.0)}]
    told = [
        Disclosure(0, {}, {"gamma": torch.tensor(2.5), "mask.0": torch.tensor([1.0, 1.0, 1.0, 2.0])}),
        Disclosure(1, {}, {"gamma": torch.tensor(-1.0)}),
    ]
    assert secret_metrics(told, truths) == pytest.approx({"secret_error_gamma": 0.125, "secret_error_mask.0": 0.5})
    assert secret_metrics([Disclosure(0, {}), Disclosure(1, {})], truths) == {}


@pytest.mark.parametrize("secrets", [{"delta": torch.tensor(1.0)}, {"gamma": torch.ones(2)}])
def test_an_estimate_of_what_was_not_drawn_is_refused(secrets: Tensors) -> None:
    with pytest.raises(ValueError, match="secrets of shapes"):
        secret_metrics([Disclosure(0, {}, secrets)], [{"gamma": torch.tensor(2.0)}])


def test_whoever_takes_a_model_of_one_class_has_taken_nothing() -> None:
    """An untrained or broken model is agreed with in full, by the model itself and by any that names the class."""
    broken, constant = scale(0.0, parameters(0)), scale(0.0, parameters(1))
    broken["2.bias"], constant["2.bias"] = torch.tensor([0.0, 1.0, 0.0]), torch.tensor([-3.0, 9.0, 2.0])
    for stolen in (broken, constant):
        found = extraction_metrics([Extraction(stolen)], exam(nn.ReLU(), broken))
        assert found["agreement"] == found["prior_agreement"] == 1.0
        assert goals.find("extraction").privacy(found)["leak"] == 0.0


def test_rounds_in_which_the_server_names_one_class_do_not_raise_the_leak() -> None:
    """A constant guess has no leak whatever the rounds are, and the others' leak is theirs alone."""
    broken, trained, other = scale(0.0, parameters(0)), parameters(0), parameters(1)
    alone = extraction_metrics([Extraction(other)], exam(nn.ReLU(), trained))
    mixed = extraction_metrics([Extraction(other), Extraction(broken)], exam(nn.ReLU(), trained, broken))
    assert mixed["agreement"] > alone["agreement"]
    leaks = [goals.find("extraction").privacy(m)["leak"] for m in (alone, mixed)]
    assert leaks[1] == pytest.approx(leaks[0])


def test_leak_is_the_agreement_above_the_best_constant_prediction() -> None:
    told = {"agreement": 0.7, "prior_agreement": 0.4}
    assert goals.find("extraction").privacy(told) == pytest.approx({"leak": 0.5, "privacy": 0.5})
    assert goals.find("extraction").privacy({**told, "agreement": 0.3})["leak"] == 0
    assert goals.find("extraction").privacy({"agreement": 1.0, "prior_agreement": 1.0})["leak"] == 0


# -- what is watched -----------------------------------------------------------------------------------


def watch(total: int, **options: str) -> Watch:
    card = registry.find("attack", "model-extraction")
    attack: ModelExtractionAttack = card.load()(card.parse(options))
    return attack.watch(Schedule(rounds=total))


def test_rounds_are_spread_evenly_and_the_last_is_among_them() -> None:
    assert watch(100, rounds="5").victims == (19, 39, 59, 79, 99)
    assert watch(100, rounds="1").victims == (99,)
    assert watch(3, rounds="5").victims == (0, 1, 2)


def test_an_unsampled_client_looks_at_the_last_round_that_it_saw() -> None:
    assert last_seen((3, 5, 9), (2, 4, 5, 8, 20)) == (3, 5, 9)
    assert last_seen((), (2, 4)) == ()
    made = of(records(participation=0.5, rounds="6", history="5"), "client", "paper")
    assert made["status"] == "ok", made["reason"]
    assert made["metrics"]["agreement"] == 1
    assert made["metrics"]["models"] >= 4


def test_only_the_rounds_that_are_needed_are_written_down() -> None:
    assert list(watch(100, rounds="2", history="3").written) == [46, 47, 48, 49, 96, 97, 98, 99]
    assert list(watch(100, rounds="2", history="0").written) == [49, 99]
    assert list(watch(6, rounds="2", history="9").written) == [0, 1, 2, 3, 4, 5]
    assert list(Watch(2, 5, (3,)).written) == [2, 3, 4, 5]


# -- the default disclosure ----------------------------------------------------------------------------


def seen(down: Tensors, t: int = 3) -> Seen:
    return Seen(t, participants=(0, 1), down=down)


def fedavg() -> FedAvg:
    return FedAvg(None, Task(dense(nn.ReLU()), input_shape=(4,), n_classes=3, sizes=(8, 8), schedule=Schedule()))


def test_a_plain_broadcast_is_the_model() -> None:
    params = parameters(0)
    told = fedavg().disclosure(Threat("client", "paper"), seen(params))
    assert isinstance(told, Disclosure)
    assert told.round == 3
    assert told.params is params
    assert told.secrets == {}


def test_no_model_is_made_of_other_tensors() -> None:
    told = fedavg().disclosure(Threat("client", "paper"), seen({**parameters(0), "seed": torch.zeros(1)}))
    assert isinstance(told, NotApplicable)
    assert "not the plain model" in told.reason
    own = fedavg().disclosure(Threat("server", "paper"), seen(parameters(0)))
    assert isinstance(own, NotApplicable)
    assert "its own model" in own.reason


def test_a_party_answers_for_all_rounds_that_it_saw_or_for_none() -> None:
    threat, params = Threat("eavesdropper", "paper"), parameters(0)
    told = fedavg().disclosures(threat, {t: seen(params, t) for t in (1, 4)}, (1, 2, 4))
    assert not isinstance(told, NotApplicable)
    assert [d.round for d in told] == [1, 4]
    odd = fedavg().disclosures(threat, {1: seen(params, 1), 4: seen({}, 4)}, (1, 4))
    assert isinstance(odd, NotApplicable)
    nothing = fedavg().disclosures(threat, {1: seen(params, 1)}, (2,))
    assert isinstance(nothing, NotApplicable)
    assert "saw none of the rounds" in nothing.reason


# -- from training to record ---------------------------------------------------------------------------


def records(defense: str = "fedavg", jobs: int = 1, participation: float = 1.0, **options: str) -> list[dict[str, Any]]:
    """Of all parties and forms, in order."""
    made = compose.parse_attack("model-extraction", {"rounds": "2", "history": "6", **options})
    schedule = Schedule(rounds=20, batch_size=8, lr=0.2, participation=participation)
    problem = ProblemSpec("digits", model="mlp", partition="iid", clients=2, model_options=mlp(), schedule=schedule)
    names = dict.fromkeys((defense, "fedavg"))
    groups = [
        GroupSpec(problem, defense=compose.parse_defense(n), attack=made, threats=threats(PARTIES, FORMS), seed=0)
        for n in names
    ]
    return run_groups(groups, jobs)[0].records


def mlp() -> Any:
    return registry.find("model", "mlp").parse({"widths": "32"})


def of(made: list[dict[str, Any]], party: str, form: str) -> dict[str, Any]:
    (record,) = [r for r in made if (r["party"], r["form"]) == (party, form)]
    return record


@pytest.mark.parametrize("defense", ["fedavg", "dp-sgd", "median", "fedavg+zero-sum", "baffle"])
def test_a_model_in_clear_is_taken_whole(defense: str) -> None:
    for record in records(defense):
        if record["party"] == "server":
            assert (record["status"], record["reason"]) == ("n/a", "the server holds its own model")
            continue
        assert record["status"] == "ok", record["reason"]
        assert record["reading"] == "broadcast"
        m = record["metrics"]
        assert m["agreement"] == m["final_agreement"] == 1.0
        assert m["parameter_cosine"] == pytest.approx(1.0)
        assert m["stolen_accuracy"] == m["server_accuracy"]
        assert record["scores"] == {"leak": 1.0, "privacy": 0.0}


def test_the_server_s_accuracy_is_that_of_the_round_looked_at() -> None:
    made = of(records(rounds="1"), "client", "paper")
    curve = made["utility"]["clean_curve"]
    assert made["metrics"]["server_accuracy"] != curve[-1][1]  # W of the last round is not what it made of it
    assert made["metrics"]["models"] == 1.0


def test_dbcl_gives_less_away_in_one_sketch_than_in_several() -> None:
    made = records("dbcl")
    for party in ("client", "eavesdropper"):
        paper, adaptive = (of(made, party, form) for form in ("paper", "adaptive"))
        assert paper["metrics"]["parameter_cosine"] < 0.9 < adaptive["metrics"]["parameter_cosine"]
        assert paper["metrics"]["output_error"] > 5 * adaptive["metrics"]["output_error"]
        assert paper["scores"]["leak"] < adaptive["scores"]["leak"]


@pytest.mark.parametrize("change", [{"rounds": "3"}, {"history": "2"}])
def test_every_option_acts(change: dict[str, str]) -> None:
    assert {f.name for f in fields(registry.find("attack", "model-extraction").options)} == {"rounds", "history"}
    usual, other = (of(records("dbcl", **c), "client", "adaptive")["metrics"] for c in ({}, change))
    assert usual != other


def test_twice_and_with_two_workers_the_same_records() -> None:
    def stable(made: list[dict[str, Any]]) -> list[str]:
        volatile = {path.partition(".")[0] for path in VOLATILE}
        return [canonical({k: v for k, v in r.items() if k not in volatile}) for r in made]

    assert stable(records("dbcl")) == stable(records("dbcl")) == stable(records("dbcl", 2))


class Half(FedAvg):
    """Sends twice the model, and says what it drew."""

    def broadcast(self, state: State, rng: Rng) -> Broadcast:
        return Broadcast(scale(2.0, state.params), {"factor": torch.tensor(2.0)})

    def client(self, down: Tensors, batch: Any, memory: Tensors, noise: Tensors) -> tuple[Tensors, Tensors]:
        return super().client(scale(0.5, down), batch, memory, noise)

    def clients(self, down: Tensors, batches: Any, memories: Any, noises: Any) -> Any:
        return super().clients(scale(0.5, down), batches, memories, noises)

    def disclosure(self, threat: Threat, now: Seen) -> Disclosure | NotApplicable:
        if threat.form == "paper":
            raise RuntimeError("a third party's mistake")
        guessed = 2.0 if threat.party == "client" else 1.0
        return Disclosure(now.index, scale(1 / guessed, now.down), {"factor": torch.tensor(guessed)})


def test_secrets_and_mistakes_of_a_third_party_s_defense(monkeypatch: pytest.MonkeyPatch) -> None:
    card = replace(registry.find("defense", "fedavg"), target=Half)
    find = registry.find
    monkeypatch.setattr(registry, "find", lambda kind, name: card if kind == "defense" else find(kind, name))
    made = records()
    knows, guesses = (of(made, party, "adaptive") for party in ("client", "eavesdropper"))
    failed = of(made, "client", "paper")
    assert knows["metrics"]["secret_error_factor"] == 0.0
    assert knows["metrics"]["agreement"] == 1.0
    assert guesses["metrics"]["secret_error_factor"] == 0.5
    assert failed["status"] == "failed"
    assert failed["reason"].startswith("RuntimeError: a third party's mistake")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ([], "returned a list of 0"),
        ([Labels(torch.zeros(1))] * 2, "returned a list of 2 (a Labels)"),
    ],
)
def test_an_answer_that_cannot_be_judged_is_a_failed_record(
    answer: Any, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ModelExtractionAttack, "run", lambda self, view, rng, progress: answer)
    made = of(records(), "client", "adaptive")
    assert made["status"] == "failed"
    assert f"{said}, allowed: a list of 2 Extraction" in made["reason"]
    assert made["scores"] == {}
