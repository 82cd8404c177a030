"""Rounds that a malicious server shapes: only its messages change, and only what it may know reaches it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from fedarena.attacks.reconstruction.inconsistent_models import switched_off, touched
from fedarena.contracts.active_inference import ActiveInference, Bait, Message, Opportunity
from fedarena.contracts.inference import Guess, Progress
from fedarena.contracts.observation import Observation
from fedarena.contracts.transcript import cut
from fedarena.contracts.view import View
from fedarena.core import registry
from fedarena.core.compact_pickle import dumps
from fedarena.core.options import NoOptions
from fedarena.core.rng import Rng
from fedarena.core.tensors import flatten, row
from fedarena.core.threat import Form, NotApplicable, Threat
from fedarena.federation import compose, rounds
from fedarena.federation.finished_run import FinishedRun
from fedarena.federation.spec import GroupSpec
from fedarena.federation.tampered_run import TamperedRun, tampered_run
from fedarena.problem.problem import build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.testing.same import tensors_in

SERVER = Threat("malicious-server", "adaptive")


class Attack(ActiveInference):
    """A server that sends what a test says, and notes what it was given."""

    def __init__(self, messages: Any) -> None:
        super().__init__(NoOptions())
        self.messages = messages
        self.given: list[Opportunity] = []
        self.streams: list[Rng] = []

    def craft(self, opportunity: Opportunity, rng: Rng) -> Bait | NotApplicable:
        self.given.append(opportunity)
        self.streams.append(rng)
        bait: Bait | NotApplicable = self.messages(opportunity)
        return bait

    def run(self, view: View, rng: Rng, progress: Progress) -> Guess:
        return []


def finished(
    defense: str,
    model: str = "mlp",
    clients: int = 3,
    partition: str = "iid",
    options: dict[str, str] | None = None,
    **schedule: Any,
) -> FinishedRun:
    """Four rounds that were written down."""
    training = Schedule(**{"rounds": 4, "batch_size": 4, "lr": 0.05, **schedule})
    problem = ProblemSpec(
        "digits",
        model=model,
        partition=partition,
        partition_options=registry.find("partition", partition).parse({}),
        clients=clients,
        schedule=training,
        model_options=registry.find("model", model).parse({}),
    )
    spec = GroupSpec(problem, defense=compose.parse_defense(defense, options or {}), attack=None, threats=(), seed=0)
    built = build(problem, 0, None, "cpu", compose.auxiliary(spec.defense))
    protocol = compose.make_defense(spec.defense, built.task)
    return FinishedRun(spec, built, protocol, rounds.run(protocol, built, Rng(0).child("federation"), watch=range(4)))


def shaped(run: FinishedRun, messages: Any, victims: tuple[int, ...] = (1, 2)) -> TamperedRun:
    result = tampered_run(run, Attack(messages), victims)
    assert isinstance(result, TamperedRun), result
    return result


HONEST: list[tuple[str, str, dict[str, Any]]] = [
    ("fedavg", "mlp", {}),
    ("fedavg", "mlp", {"client_optimizer": "momentum"}),
    ("fedavg", "mlp", {"local_epochs": 2}),
    ("fedavg", "lenet-dlg", {"participation": 0.67}),
    ("dp-sgd", "mlp", {}),
    ("two-stage", "mlp", {}),
    ("baffle", "mlp", {}),
    ("dbcl", "mlp", {}),
    ("pbpfl", "mlp", {"loss": "mse"}),
    ("fetchsgd", "mlp", {}),
    ("pruning", "mlp", {}),
    ("censor", "mlp", {}),
    ("dp-fedavg", "mlp", {}),
    ("dp-ftrl", "mlp", {}),
    ("pairwise-masks", "mlp", {}),
]


@pytest.mark.parametrize(("defense", "model", "schedule"), HONEST)
def test_a_server_that_sends_what_it_sent_gets_what_it_got(defense: str, model: str, schedule: dict[str, Any]) -> None:
    """With momenta of earlier rounds, noise, masks and dropped samples: bit for bit."""
    run = finished(defense, model, **schedule)
    honest = {r.index: r for r in run.run.rounds}

    def same(o: Opportunity) -> Bait:
        r = honest[o.state.round]
        return Bait.for_all(Message(r.params, r.down, r.secret), o)

    for t, tampered in shaped(run, same).tampered.items():
        for name, sent in honest[t].ups.items():
            assert torch.equal(tampered.round.ups[name], sent)
        if honest[t].mean is not None:
            assert all(torch.equal(tampered.round.mean[name], m) for name, m in honest[t].mean.items())  # type: ignore[index, union-attr]
            assert torch.equal(tampered.round.wire, honest[t].wire)  # type: ignore[arg-type]


def test_a_target_is_read_whose_upload_a_rule_did_not_pick() -> None:
    run = finished("krum", clients=5)
    picked = {r.index: r.averaged for r in run.run.rounds}

    def to_another(o: Opportunity) -> Bait:
        message = o.message(o.state.params, Rng(0))
        target = next(client for client in o.participants if client not in picked[o.state.round])
        return Bait(dict.fromkeys(o.participants, message), (target,))

    tampered = shaped(run, to_another)
    readings = tampered.readings(SERVER, cut(run.run.rounds, SERVER), (1, 2))
    assert not isinstance(readings, NotApplicable)
    assert [o.round for o in readings[0].observations] == [1, 2]


def test_an_honest_message_is_the_protocol_s_own() -> None:
    run = finished("dbcl")

    def honest(o: Opportunity) -> Bait:
        return Bait.for_all(o.message(o.state.params, Rng(0).child("federation").child("broadcast", o.state.round)), o)

    for t, tampered in shaped(run, honest).tampered.items():
        r = next(r for r in run.run.rounds if r.index == t)
        assert all(torch.equal(tampered.round.down[name], sent) for name, sent in r.down.items())


def ones(o: Opportunity) -> Bait:
    return Bait.for_all(o.message({name: torch.full_like(p, 0.01) for name, p in o.state.params.items()}, Rng(1)), o)


def test_a_server_of_baffle_can_send_a_model_where_differences_are_due() -> None:
    """With downlink=scalars, as after a failed round: clients then work at that model, as if it were always sent."""
    small = {"directions": "20"}
    run = finished("baffle", options={**small, "downlink": "scalars"})
    due = run.run.rounds[1].down
    assert "fc1.weight" not in due
    tampered, usual = (shaped(r, ones).tampered[1].round for r in (run, finished("baffle", options=small)))
    assert all(torch.equal(tampered.ups[name], up) for name, up in usual.ups.items())
    assert torch.equal(tampered.down["fc1.weight"], torch.full_like(tampered.down["fc1.weight"], 0.01))


def test_a_server_of_dbcl_sends_the_largest_sketches_that_are_allowed() -> None:
    run = finished("dbcl", options={"ratio": "0.5", "vary": "0.25"})
    sizes = {r.down["fc1.weight"].shape[1] for r in run.run.rounds}
    assert len(sizes) > 1
    assert max(sizes) <= 48
    tampered = shaped(run, ones, (0, 1, 2, 3))
    assert {r.round.down["fc1.weight"].shape[1] for r in tampered.tampered.values()} == {48}
    readings = tampered.readings(SERVER, cut(run.run.rounds, SERVER), (0, 1, 2, 3))
    assert not isinstance(readings, NotApplicable)


def test_a_sketch_beyond_what_the_options_allow_is_refused() -> None:
    def wider(o: Opportunity) -> Bait:
        message = o.message(o.state.params, Rng(0))
        wide = torch.zeros(200, 49)
        return Bait.for_all(replace(message, down={**message.down, "fc1.weight": wide}), o)

    with pytest.raises(ValueError, match="not in the protocol's format"):
        tampered_run(finished("dbcl", options={"ratio": "0.5", "vary": "0.25"}), Attack(wider), (1,))


def zeros(o: Opportunity) -> Message:
    return o.message({name: torch.zeros_like(p) for name, p in o.state.params.items()}, Rng(0))


@pytest.mark.parametrize("defense", ["fedavg", "pairwise-masks", "dbcl", "pbpfl", "baffle"])
def test_before_it_sends_the_server_has_no_sample_and_no_upload(defense: str) -> None:
    run = finished(defense, batch_size=1, loss="mse" if defense == "pbpfl" else "cross-entropy")
    attack = Attack(lambda o: Bait.for_all(zeros(o), o))
    assert isinstance(tampered_run(run, attack, (1,)), TamperedRun)
    (given,) = attack.given
    assert given.population is None
    r = run.run.rounds[1]
    private = (*(b.x for b in r.batches), *(up for ups in r.ups.values() for up in ups))
    own = {t.numpy().tobytes() for t in private if t.numel() >= 64 and t.any()}  # zeros are everywhere
    assert len(own) >= len(r.batches)
    held = dumps(given)
    assert not any(secret in held for secret in own)
    assert r.params["fc1.weight"].numpy().tobytes() in held


def test_the_server_s_stream_tells_nothing_of_the_run_s_seed() -> None:
    """From the seed an attack could rebuild the clients' noise and masks."""
    attack = Attack(lambda o: Bait.for_all(zeros(o), o))
    run = finished("fedavg")
    tampered_run(run, attack, (1, 2))
    assert [stream.path for stream in attack.streams] == [(), ()]
    assert run.spec.root not in {stream.seed for stream in attack.streams}
    assert len({stream.seed for stream in attack.streams}) == 2


def test_what_comes_back_is_seen_as_by_any_server() -> None:
    """A view has the answers to what was sent, the model that was sent, and no sample."""
    run = finished("fedavg", batch_size=1)
    tampered = shaped(run, lambda o: Bait.for_all(zeros(o), o))
    readings = tampered.readings(Threat("server", "adaptive"), {}, (1, 2))
    assert not isinstance(readings, NotApplicable)
    view = tampered.view(SERVER, Attack(None), readings[0])
    for seen in view.observations:
        r = tampered.tampered[seen.round].round
        position = r.participants.index(seen.clients[0])
        assert torch.equal(flatten(seen.target), flatten(row(r.ups, position)))
        assert seen.sent is not None
        assert not flatten(seen.sent).any()
        assert not any(torch.equal(t.flatten(), r.batches[position].x.flatten()) for t in tensors_in(view))


def test_one_round_alone_is_shaped_at_a_time() -> None:
    """The momentum that is taken off an upload is that of the honest round before."""
    run = finished("fedavg", client_optimizer="momentum")
    both = shaped(run, lambda o: Bait.for_all(zeros(o), o), victims=(1, 2))
    alone = shaped(run, lambda o: Bait.for_all(zeros(o), o), victims=(2,))
    seen = {r.index: r for r in run.run.rounds}
    server = Threat("server", "adaptive")

    honest = cut(list(seen.values()), server)
    first, second = both.readings(server, honest, (1, 2)), alone.readings(server, honest, (2,))
    assert not isinstance(first, NotApplicable)
    assert not isinstance(second, NotApplicable)
    assert torch.equal(flatten(first[0].observations[1].target), flatten(second[0].observations[0].target))


def to_one(o: Opportunity) -> Bait:
    """The honest model for the victim, and a dead one for all others."""
    dead = switched_off(o.protocol.task, o.state.params)
    assert touched(o.protocol.task, dead) == {"out.bias"}
    lure, off = o.message(o.state.params, Rng(0)), o.message(dead, Rng(0))
    return Bait({c: lure if c == o.victim else off for c in o.participants}, (o.victim,), ("out.bias",))


@pytest.mark.parametrize("clients", [3, 16])
def test_a_secure_sum_of_one_client_that_is_left_is_its_upload(clients: int) -> None:
    run = finished("pairwise-masks", clients=clients)
    tampered = shaped(run, to_one)
    readings = tampered.readings(Threat("server", "adaptive"), {}, (1, 2))
    assert not isinstance(readings, NotApplicable)
    for seen in readings[0].observations:
        r = next(r for r in run.run.rounds if r.index == seen.round)
        assert seen.clients == (r.victim,)
        assert seen.images == 4
        alone = row(r.ups, r.participants.index(seen.clients[0]))
        kept = {name: alone[name] for name in seen.target}
        assert "out.bias" not in kept
        assert torch.cosine_similarity(flatten(seen.target), flatten(kept), dim=0) > 0.9999
        x, y = tampered.truth(seen)
        assert seen.simulate(x, torch.nn.functional.one_hot(y, 10).float()).keys() == seen.target.keys()


def test_rounds_whose_target_dropped_out_are_left_out() -> None:
    run = finished("pairwise-masks", clients=6, options={"dropout": "0.2"})
    survived = {r.index: r.averaged for r in run.run.rounds}
    (lost, gone), *_ = [(t, c) for t, there in survived.items() for c in range(6) if c not in there]
    kept = next(t for t, there in survived.items() if t != lost and there)

    def after(client: int, rounds: tuple[int, ...]) -> TamperedRun | NotApplicable:
        def to(o: Opportunity) -> Bait:
            target = client if o.state.round == lost else survived[o.state.round][0]
            return Bait(dict.fromkeys(o.participants, zeros(o)), (target,))

        return tampered_run(run, Attack(to), rounds)

    some, none = after(gone, (lost, kept)), after(gone, (lost,))
    assert isinstance(some, TamperedRun)
    assert list(some.tampered) == [kept]
    assert isinstance(none, NotApplicable)
    assert "dropped out" in none.reason


def test_an_attack_may_say_that_it_cannot_start() -> None:
    why = tampered_run(finished("fedavg"), Attack(lambda o: NotApplicable("not now")), (1,))
    assert why == NotApplicable("not now")


def altered(change: Any) -> Any:
    def messages(o: Opportunity) -> Bait:
        message = zeros(o)
        return Bait.for_all(replace(message, down=change(dict(message.down))), o)

    return messages


BAD: list[tuple[Any, str]] = [
    (altered(lambda down: {**down, "more": torch.zeros(1)}), "not in the protocol's format"),
    (altered(lambda down: down | {"fc1.bias": down["fc1.bias"].double()}), "not in the protocol's format"),
    (altered(lambda down: down | {"fc1.bias": down["fc1.bias"] * float("nan")}), "finite"),
    (lambda o: Bait({0: zeros(o)}, (0,)), "sends messages to"),
    (lambda o: Bait(dict.fromkeys(o.participants, zeros(o)), ()), "is after clients"),
    (lambda o: Bait(dict.fromkeys(o.participants, zeros(o)), (99,)), "is after clients"),
    (lambda o: Bait({c: zeros(o) for c in o.participants}, o.participants), "different messages"),
]


@pytest.mark.parametrize(("messages", "why"), BAD)
def test_messages_out_of_the_protocol_s_format_are_refused(messages: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        tampered_run(finished("fedavg"), Attack(messages), (1,))


def test_the_training_goes_on_as_if_nothing_had_been() -> None:
    run = finished("fedavg")
    before: list[Tensor] = [flatten(r.after).clone() for r in run.run.rounds]
    tampered = shaped(run, lambda o: Bait.for_all(zeros(o), o))
    assert all(torch.equal(a, flatten(r.after)) for a, r in zip(before, tampered.run.rounds, strict=True))
    assert torch.equal(flatten(tampered.run.params), flatten(run.run.params))


@pytest.mark.parametrize("form", ["paper", "adaptive"])
def test_a_sum_of_clients_with_two_messages_is_read_as_one_of_all(form: Form) -> None:
    """The same message twice is as one, also where clients take different numbers of local steps."""
    run, threat = finished("pairwise-masks", partition="dirichlet", local_epochs=1), Threat("malicious-server", form)

    def read(copies: int) -> Observation:
        def messages(o: Opportunity) -> Bait:
            sent = [o.message(o.state.params, Rng(0)) for _ in range(copies)]
            return Bait({c: sent[min(i, copies - 1)] for i, c in enumerate(o.participants)}, o.participants)

        readings = shaped(run, messages, (1,)).readings(threat, cut(run.run.rounds, threat), (1,))
        assert not isinstance(readings, NotApplicable)
        return readings[0].observations[0]

    one, two = read(1), read(2)
    assert len({run.problem.task.schedule.steps(size) for size in run.problem.task.sizes}) > 1
    assert (two.clients, two.images) == (one.clients, one.images)
    assert torch.allclose(flatten(two.target), flatten(one.target))


def test_the_model_that_was_sent_is_the_first_clients_own() -> None:
    run = finished("pairwise-masks")

    def messages(o: Opportunity) -> Bait:
        scaled = [o.message({n: k * p for n, p in o.state.params.items()}, Rng(0)) for k in range(3)]
        return Bait(dict(zip(o.participants, scaled, strict=True)), tuple(reversed(o.participants)))

    made = shaped(run, messages, (1,))
    readings = made.readings(SERVER, cut(run.run.rounds, SERVER), (1,))
    assert not isinstance(readings, NotApplicable)
    (seen,) = made.view(SERVER, Attack(messages), readings[0]).observations
    assert seen.sent is not None
    first = made.tampered[1].bait.messages[seen.clients[0]]
    assert torch.equal(flatten(seen.sent), flatten(first.params))
