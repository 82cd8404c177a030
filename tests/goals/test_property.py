"""Property inference as an experiment: who works on what, what is refused, what is asked and how it is judged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from scipy.stats import norm
from torch import Tensor

from fedarena.contracts.defense import Defense
from fedarena.contracts.inference import Inference, PropertyScores
from fedarena.core import registry
from fedarena.core.errors import UserError
from fedarena.core.files import canonical
from fedarena.core.rng import Rng
from fedarena.core.text.numbers import t_quantile
from fedarena.core.threat import FORMS, PARTIES, Form, Party
from fedarena.federation import compose
from fedarena.federation.spec import GroupSpec, MethodSpec, threats
from fedarena.goals.metrics.auc_interval import score_interval
from fedarena.goals.prepared import OpenRecord
from fedarena.goals.property import (
    IN_CLEAR,
    PropertyOfBatch,
    pools,
    property_metrics,
    property_of,
    rounds_with,
    victim_of,
)
from fedarena.problem.problem import Problem, build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.runs import trial
from fedarena.runs.engine import run_groups

pytestmark = pytest.mark.usefixtures("few_trees")

FAST = {"rounds": "10", "round_batches": "4"}


def attack(**options: str) -> MethodSpec:
    fast = FAST | options
    if options.get("classifier") == "forest":  # which has no batches of a round's own
        del fast["round_batches"]
    return MethodSpec("property-inference", registry.find("attack", "property-inference").parse(fast))


def made(**options: str) -> Inference:
    return compose.make_inference(attack(**options))


def spec(clients: int = 2, dataset: str = "digits", **changes: Any) -> ProblemSpec:
    schedule = Schedule(**{"rounds": 14, "batch_size": 16, "lr": 0.1, **changes})
    model = registry.find("model", "mlp").parse({"widths": "16"})
    return ProblemSpec(
        dataset,
        model="mlp",
        partition="iid",
        clients=clients,
        model_options=model,
        partition_options=registry.find("partition", "iid").parse({}),
        schedule=schedule,
    )


def problem(clients: int = 2, **changes: Any) -> Problem:
    return build(spec(clients, **changes), 0)


def fedavg(held: Problem) -> Defense:
    return compose.make_defense(compose.parse_defense("fedavg"), held.task)


def records(
    defense: str = "fedavg", parties: tuple[Party, ...] = PARTIES, forms: tuple[Form, ...] = FORMS, seed: int = 0,
    clients: int = 2, options: dict[str, str] | None = None, **changes: Any,
) -> list[dict[str, Any]]:  # fmt: skip
    methods = dict.fromkeys((defense, "fedavg"))
    groups = [
        GroupSpec(
            spec(clients, **changes),
            defense=compose.parse_defense(n),
            attack=attack(**options or {}),
            threats=threats(parties, forms),
            seed=seed,
        )
        for n in methods
    ]
    return run_groups(groups, 1)[0].records


def known_of(held: Problem, x: Tensor) -> Tensor:
    """Whether samples are bold, looked up among the training samples."""
    every = held.inputs(torch.arange(len(held.y))).flatten(1)
    at = [int((every == row).all(1).nonzero()[0]) for row in x.flatten(1)]
    return held.attributes["bold"][0][at]


# -- who works on what ----------------------------------------------------------------------------------


def test_only_the_victim_has_the_property_and_in_drawn_rounds_alone() -> None:
    held, method = problem(3), made()
    watch = method.watch(held.task.schedule)
    draw = PropertyOfBatch().draws(held, fedavg(held), method, watch, Rng(0))
    have = rounds_with(watch.victims, 5.0, Rng(0).child("draws"))
    assert len(watch.victims) == 10
    assert len(have) == 2
    for t in watch.victims:
        for client in range(3):
            batch = draw(t, client)
            assert batch is not None
            assert batch.x.shape[:2] == (1, 16)
            assert known_of(held, batch.images()[0]).eq(int(client == 1 and t in have)).all()
            own = held.inputs(held.shards[client]).flatten(1)
            assert all(bool((own == row).all(1).any()) for row in batch.images()[0].flatten(1))
    assert draw(watch.victims[-1] + 1, 1) is None


def test_all_local_epochs_have_the_property_each_in_a_new_order() -> None:
    held, method = problem(batch_size=32, local_epochs=2, local_samples=64), made()
    watch = method.watch(held.task.schedule)
    rng = Rng(0).child("draws")
    t = next(iter(rounds_with(watch.victims, 5.0, rng)))
    batch = PropertyOfBatch().draws(held, fedavg(held), method, watch, Rng(0))(t, 1)
    assert batch is not None
    assert batch.x.shape[:2] == (4, 32)
    assert known_of(held, batch.images()[0]).eq(1).all()
    first, second = (part.flatten(0, 1).flatten(1) for part in batch.x.split(2))
    assert not torch.equal(first, second)
    assert torch.equal(first.unique(dim=0), second.unique(dim=0))


def test_samples_without_the_attribute_are_in_no_batch() -> None:
    held = problem()
    train, test = (t.clone() for t in held.attributes["bold"])
    shard = held.shards[1]
    bold = shard[train[shard] == 1]
    train[bold[5:]] = -1
    held = replace(held, attributes={"bold": (train, test)})
    having, lacking = pools(held, made(), 1)
    assert sorted(having.tolist()) == sorted(bold[:5].tolist())
    assert len(having) + len(lacking) == int(train[shard].ge(0).sum())
    method = made()
    watch, rng = method.watch(held.task.schedule), Rng(0).child("draws")
    t = next(iter(rounds_with(watch.victims, 5.0, rng)))
    batch = PropertyOfBatch().draws(held, fedavg(held), method, watch, Rng(0))(t, 1)
    assert batch is not None
    assert len(batch.images()[1]) == 16
    assert len(batch.images()[0].flatten(1).unique(dim=0)) <= 5


def test_which_rounds_have_it_is_drawn_and_their_number_is_not() -> None:
    rounds = range(100)
    drawn = [rounds_with(rounds, 5.0, Rng(s)) for s in range(20)]
    assert {len(d) for d in drawn} == {20}
    assert drawn[0] == rounds_with(rounds, 5.0, Rng(0))
    assert len(set(drawn)) == 20
    gaps = {b - a for d in drawn for a, b in zip(sorted(d), sorted(d)[1:], strict=False)}
    assert len(gaps) > 5
    assert len(rounds_with(range(3), 100.0, Rng(0))) == 1
    assert len(rounds_with(range(3), 1.0, Rng(0))) == 2


def test_alone_a_client_is_its_own_victim() -> None:
    alone = [problem(clients) for clients in (1, 2, 3)]
    assert [victim_of(held, fedavg(held), Rng(0)) for held in alone] == [0, 1, 1]


@pytest.mark.parametrize("defense", ["fedavg", "baffle"])
def test_a_client_alone_is_told_that_there_is_no_other(defense: str) -> None:
    told = [r for r in records(defense, ("client",), clients=1) if r["defense"] == defense]
    assert {(r["status"], r["reason"]) for r in told} == {
        ("n/a", "the malicious client is the only one: there is no other client's upload to be learned")
    }


@pytest.mark.parametrize("party", ["client", "eavesdropper"])
def test_without_a_server_the_neighbour_that_is_read_has_the_property(party: Party) -> None:
    """Whatever the graph: node 0 need not hear node 1."""
    method = compose.parse_defense("d-sgd", {"graph": "edges", "edges": "0-2,1-2,1-3"})
    group = GroupSpec(spec(4), defense=method, attack=attack(), threats=threats((party,), FORMS), seed=0)
    for cell in trial.prepare(group):
        assert isinstance(cell, OpenRecord), cell.record["reason"]
        assert {o.clients for o in cell.challenge.view.observations} == {(2,)}
        assert int(cell.challenge.answers.sum()) == 2


# -- what is refused ------------------------------------------------------------------------------------


def test_missing_attributes_are_refused() -> None:
    held = problem()
    with pytest.raises(UserError, match="'dataset' is digits, whose samples have no attributes"):
        PropertyOfBatch().refuse(replace(held, attributes={}), fedavg(held), made())
    with pytest.raises(UserError, match="option 'property' is 'bald', allowed with digits: bold"):
        PropertyOfBatch().refuse(held, fedavg(held), made(property="bald"))
    assert property_of(held, made()) == property_of(held, made(property="bold")) == "bold"


@pytest.mark.parametrize(("client", "value", "said"), [(1, 1, "sample with it"), (0, 0, "sample without it")])
def test_a_shard_without_such_samples_is_refused(client: int, value: int, said: str) -> None:
    held = problem()
    train, test = (t.clone() for t in held.attributes["bold"])
    train[held.shards[client]] = 1 - value
    with pytest.raises(UserError, match=f"client {client} holds no {said}"):
        PropertyOfBatch().refuse(replace(held, attributes={"bold": (train, test)}), fedavg(held), made())


def test_an_attacker_without_samples_of_its_own_cannot_start(monkeypatch: pytest.MonkeyPatch) -> None:
    held = build(spec(), 0)
    train, test = held.attributes["bold"]
    monkeypatch.setattr(trial, "build", lambda *a: replace(held, attributes={"bold": (train, test.clone().fill_(-1))}))
    group = GroupSpec(
        spec(),
        defense=compose.parse_defense("fedavg"),
        attack=attack(),
        threats=threats(("server", "client"), ("paper",)),
        seed=0,
    )
    server, client = trial.prepare(group)
    assert server.record["status"] == "n/a"
    assert "no sample of its own with" in server.record["reason"]
    assert isinstance(client, OpenRecord)  # it has its shard


# -- what is asked --------------------------------------------------------------------------------------------


def prepared(defense: str = "fedavg", party: Party = "server", form: Form = "paper", **changes: Any) -> Any:
    group = GroupSpec(
        spec(changes.pop("clients", 2), **changes),
        defense=compose.parse_defense(defense),
        attack=attack(),
        threats=threats((party,), (form,)),
        seed=0,
    )
    return trial.prepare(group)


def test_the_answers_are_what_the_victim_worked_on() -> None:
    (cell,) = prepared()
    seen, truth = cell.challenge.view.observations, cell.challenge.answers
    assert int(truth.sum()) == 2
    group = GroupSpec(
        spec(),
        defense=compose.parse_defense("fedavg"),
        attack=attack(),
        threats=threats(("server",), ("paper",)),
        seed=0,
    )
    held = build(group.problem, 0)
    method = made()
    watch = method.watch(held.task.schedule)
    draw = PropertyOfBatch().draws(held, fedavg(held), method, watch, Rng(0))
    for o, has in zip(seen, truth.tolist(), strict=True):
        batch = draw(o.round, 1)
        assert batch is not None
        x, y = batch.images()
        assert known_of(held, x).eq(int(has)).all()
        # What was seen is what this batch gives: the run used these draws.
        again = o.simulate(x, torch.nn.functional.one_hot(y, 10).float())
        for name, t in o.target.items():
            torch.testing.assert_close(again[name], t, atol=1e-6, rtol=1e-4)


def test_the_attacker_has_the_held_out_data_and_a_client_its_shard_besides() -> None:
    held = problem()
    server, client = (prepared(party=party)[0].challenge.view.population for party in ("server", "client"))
    assert len(server.y) == len(held.y_test)
    assert len(client.y) == len(held.y_test) + len(held.shards[0])
    assert set(server.attributes) == {"bold"}
    torch.testing.assert_close(server.x, held.x_test.float() / held.scale)
    assert torch.equal(client.attributes["bold"][len(held.y_test) :], held.attributes["bold"][0][held.shards[0]])


@pytest.mark.parametrize("form", FORMS)
def test_unsketched_parameters_are_a_reading_of_their_own(form: Form) -> None:
    whole, clear = prepared("dbcl", form=form)
    assert clear.challenge.reading == f"{whole.challenge.reading}, {IN_CLEAR}"
    o, part = whole.challenge.view.observations[0], clear.challenge.view.observations[0]
    assert set(part.target) == {"fc1.bias", "out.weight", "out.bias"}
    assert set(o.target) == {*part.target, "fc1.weight"}
    x, y = torch.rand(16, 1, 8, 8), torch.full((16, 10), 0.1)
    for name, t in part.simulate(x, y).items():
        assert torch.equal(t, o.simulate(x, y)[name])
    assert "cosine" in whole.record["metrics"]
    assert "cosine" not in clear.record["metrics"]


def test_a_protocol_that_hides_all_or_nothing_has_one_reading() -> None:
    assert len(prepared("fedavg")) == 1
    assert len(prepared("pbpfl", loss="mse", form="adaptive")) == 1


def test_rounds_without_the_victim_are_left_out() -> None:
    (cell,) = prepared(clients=4, participation=0.5, rounds=40)
    assert 0 < len(cell.challenge.view.observations) < 10
    assert all(1 in o.clients for o in cell.challenge.view.observations)


# -- the judge ------------------------------------------------------------------------------------------


def scores(values: list[float]) -> PropertyScores:
    return PropertyScores(torch.tensor(values, dtype=torch.float64), None, False)


def test_auc_is_the_share_of_pairs_in_order() -> None:
    truth = torch.tensor([True, True, False, False, False])
    found = property_metrics(scores([3.0, 1.0, 2.0, 1.0, 0.0]), truth)
    assert found["auc"] == pytest.approx((3 + 1.5) / 6)
    assert found["advantage"] == pytest.approx(2 * 4.5 / 6 - 1)
    assert found["auc_low"] < found["auc"] < found["auc_high"]
    assert (found["rounds_attacked"], found["rounds_with_property"]) == (5, 2)
    assert PropertyOfBatch().leak(found) == found["advantage"]


def test_a_perfect_ranking_of_few_rounds_is_no_certainty() -> None:
    truth = torch.arange(20) < 4
    perfect, wrong = (property_metrics(scores((sign * truth).tolist()), truth) for sign in (1.0, -1.0))
    assert (perfect["auc"], perfect["auc_high"]) == (1, 1)
    assert perfect["auc_low"] < score_interval(1.0, 4, 16)[0]  # with four, each may be one of many that go wrong
    assert perfect["auc_low"] == pytest.approx(1 - t_quantile(19) * (1 / (6 * 5) + 1 / (18 * 17)) ** 0.5)
    assert (wrong["auc"], wrong["auc_low"]) == (0, 0)
    assert wrong["auc_high"] == pytest.approx(1 - perfect["auc_low"])


@pytest.mark.parametrize("auc", [0.76, 0.98, 0.998])
def test_intervals_hold_what_they_promise(auc: float) -> None:
    """Of normal scores, 30 with the property and 120 without."""
    truth, generator, apart = torch.arange(150) < 30, torch.Generator().manual_seed(0), 2**0.5 * norm.ppf(auc)
    inside = 0
    for _ in range(150):
        values = torch.randn(150, generator=generator).double() + apart * truth.double()
        found = property_metrics(PropertyScores(values, None, False), truth)
        inside += found["auc_low"] <= auc <= found["auc_high"]
    assert inside / 150 > 0.9


def test_a_perfect_ranking_is_not_less_certain_than_a_nearly_perfect_one() -> None:
    truth = torch.arange(100) < 20
    values = truth.double() + 0.001 * torch.arange(100)
    nearly = values.clone()
    nearly[19] = 0.0985  # below one of those without
    found = [property_metrics(PropertyScores(v, None, False), truth) for v in (nearly, values)]
    assert found[0]["auc"] < found[1]["auc"] == 1
    assert found[0]["auc_low"] < found[1]["auc_low"]


@pytest.mark.parametrize("readings", [2, 4])
def test_the_best_readings_interval_holds_the_truth_as_often(readings: int) -> None:
    """Of the highest of so many rankings by chance, the interval for one alone would hold .5 too seldom."""
    truth, generator = torch.arange(60) < 12, torch.Generator().manual_seed(0)
    alone = together = 0
    for _ in range(200):
        tries = torch.randn(readings, 60, generator=generator).double()
        found = [property_metrics(PropertyScores(values, None, False), truth, readings) for values in tries]
        best = max(found, key=lambda m: m["auc"])
        alone += best["auc_low"] <= 0.5 <= best["auc_high"]
        together += best["auc_low_together"] <= 0.5 <= best["auc_high_together"]
        assert best["auc_low_together"] < best["auc_low"]
    # A search among rankings misses on one side alone.
    assert together / 200 > 0.95
    assert together > alone


def test_an_answer_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="scores of shape"):
        property_metrics(scores([1.0]), torch.tensor([True, False]))


# -- from training to record ----------------------------------------------------------------------------


@pytest.mark.parametrize(("defense", "classifier"), [("fedavg", "best"), ("dbcl", "forest"), ("dp-sgd", "ridge")])
def test_every_party_and_form_is_judged(defense: str, classifier: str) -> None:
    found = records(defense, options={"classifier": classifier, "rounds": "5"})
    assert {(r["party"], r["form"]) for r in found} == {(p, f) for p in PARTIES for f in FORMS}
    for r in found:
        assert r["status"] == "ok", r["reason"]
        assert r["goal"] == "property"
        assert r["metrics"]["rounds_attacked"] == 5
        assert ("own_auc" in r["metrics"]) == (r["form"] == "adaptive")
        assert r["scores"]["leak"] == pytest.approx(max(0.0, 2 * r["metrics"]["auc"] - 1))
        several = sum((o["party"], o["form"]) == (r["party"], r["form"]) for o in found) > 1
        assert several == (defense == "dbcl")  # estimates, and what is in clear
        assert ("auc_low_together" in r["metrics"]) == several


def test_twice_the_same_records_and_another_seed_others() -> None:
    def stable(seed: int) -> list[str]:
        found = records(parties=("server",), seed=seed, options={"rounds": "3"})
        return [canonical({k: v for k, v in r.items() if k not in ("environment", "cost")}) for r in found]

    assert stable(0) == stable(0) != stable(1)


CHANGES = {
    "property": {"property": "bold"},
    "start": {"start": "2"},
    "rounds": {"rounds": "8"},
    "stride": {"stride": "2", "rounds": "6"},
    "every": {"every": "2"},
    "with_batches": {"with_batches": "5"},
    "without_batches": {"without_batches": "3"},
    "round_batches": {"round_batches": "9"},
    "match_classes": {"match_classes": "false"},
    "features": {"features": "plain"},
    "classifier": {"classifier": "ridge"},
}


def test_every_option_is_tried() -> None:
    from dataclasses import fields

    assert set(CHANGES) == {f.name for f in fields(registry.find("attack", "property-inference").options)}


def usual_of(name: str) -> dict[str, str]:
    """Options that act in one of the classifiers alone."""
    return {"classifier": "round-forest"} if name == "round_batches" else {"classifier": "forest"}


@pytest.mark.parametrize("name", [n for n in CHANGES if n != "property"])
def test_every_option_acts(name: str) -> None:
    usual = usual_of(name)
    one, other = (
        trial.attack(cell)[0]["metrics"]
        for options in (usual, usual | CHANGES[name])
        for cell in trial.prepare(
            GroupSpec(
                spec(),
                defense=compose.parse_defense("fedavg"),
                attack=attack(**options),
                threats=threats(("server",), ("adaptive",)),
                seed=0,
            )
        )
    )
    assert one != other


def test_the_property_is_the_one_asked_for() -> None:
    held = problem()
    train, test = held.attributes["bold"]
    two = replace(held, attributes={"bold": (train, test), "light": (1 - train, 1 - test)})
    first, second = (pools(two, made(property=name), 1)[0] for name in ("", "light"))
    assert not set(first.tolist()) & set(second.tolist())
