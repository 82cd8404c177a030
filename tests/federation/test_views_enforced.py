"""The law of views, held to bytes: whatever an attack is given, secrets of others are not in it."""

from __future__ import annotations

import io
import pickle
from typing import Any

import pytest
import torch
from torch import Tensor

from fedarena.contracts.defense import Defense
from fedarena.contracts.simulators import images_behind
from fedarena.contracts.transcript import Round, cut
from fedarena.contracts.view import View, seal
from fedarena.core import registry
from fedarena.core.rng import Rng
from fedarena.core.threat import FORMS, PARTIES, VISIBILITY, NotApplicable, Threat
from fedarena.federation import compose
from fedarena.federation import rounds as federation
from fedarena.problem.problem import Problem, build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec

ROUNDS = 6


def played(name: str, **schedule: Any) -> tuple[Problem, Defense, tuple[Round, ...]]:
    usual = dict(registry.find("defense", name).usual)
    model = registry.find("model", usual.get("model", "lenet-dlg"))
    times = Schedule(rounds=ROUNDS, loss=usual.get("loss", "cross-entropy"), **schedule)
    spec = ProblemSpec(
        "digits", model=model.name, partition="iid", clients=3, model_options=model.parse({}), schedule=times
    )
    method = compose.parse_defense(name)
    problem = build(spec, 0, auxiliary=compose.auxiliary(method))
    defense = compose.make_defense(method, problem.task)
    run = federation.run(defense, problem, Rng(0).child("federation"), watch=range(ROUNDS))
    return problem, defense, run.rounds


def tensors_in(view: View) -> list[Tensor]:
    """Every tensor that serialising the view writes out, however deep it sits."""
    found: list[Tensor] = []

    class Spy(pickle.Pickler):
        def reducer_override(self, obj: Any) -> Any:
            if isinstance(obj, Tensor):
                found.append(obj.detach())
            return NotImplemented

    Spy(io.BytesIO()).dump(view)
    return found


def holds(view: View, secret: Tensor) -> bool:
    """Whether a tensor of the view, or a row of one, is the secret."""
    flat = secret.flatten().double()

    def matches(t: Tensor) -> bool:
        if t.numel() < flat.numel() or t.numel() % flat.numel():
            return False
        rows = t.double().reshape(-1, flat.numel())
        return bool(((rows - flat).abs().max(1).values < 1e-9).any())

    return any(matches(t) for t in tensors_in(view) if t.dtype.is_floating_point)


def views(defense: Defense, problem: Problem, rounds: tuple[Round, ...], threat: Threat) -> list[View]:
    readings = defense.readings(threat, cut(rounds, threat, problem.data_of(threat)), (1, 3))
    if isinstance(readings, NotApplicable):  # a server that selects hides the others' sum from a client
        assert threat.party == "client"
        return []
    task = problem.task
    return [
        seal(
            View(
                threat,
                reading=r.name,
                input_shape=task.input_shape,
                n_classes=task.n_classes,
                observations=r.observations,
            )
        )
        for r in readings
    ]


DEFENSES = registry.registries()["defense"].names()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("party", PARTIES)
@pytest.mark.parametrize("name", DEFENSES)
def test_no_view_holds_others_samples(name: str, party: Any, form: Any) -> None:
    problem, defense, rounds = played(name)
    threat = Threat(party, form)
    for view in views(defense, problem, rounds, threat):
        for r in rounds:
            for client, batch in zip(r.participants, r.batches, strict=True):
                if client != threat.client or not VISIBILITY[threat.party].own:
                    assert not any(holds(view, x) for x in batch.images()[0])
        if problem.auxiliary is not None and party != "server":
            assert not any(holds(view, x) for x in problem.auxiliary.images()[0])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("party", ["client", "eavesdropper"])
def test_dbcl_hides_weights_from_all_but_the_server(party: Any, form: Any) -> None:
    problem, defense, rounds = played("dbcl")
    hidden = [name for name, t in rounds[0].params.items() if rounds[0].down[name].shape != t.shape]
    assert hidden
    for view in views(defense, problem, rounds, Threat(party, form)):
        assert not any(holds(view, r.params[name]) for r in rounds for name in hidden)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("party", ["client", "eavesdropper"])
def test_pbpfl_hides_weights_and_secrets_from_all_but_the_server(party: Any, form: Any) -> None:
    """What is left of them in the adaptive views is what the party works out: never these very numbers."""
    problem, defense, rounds = played("pbpfl")
    for view in views(defense, problem, rounds, Threat(party, form)):
        assert not any(holds(view, p) for r in rounds for name, p in r.params.items() if "weight" in name)
        assert not any(holds(view, t) for r in rounds for t in r.secret.values())


def test_the_server_does_hold_the_weights() -> None:
    """The search above can find what is there."""
    problem, defense, rounds = played("dbcl")
    (view,) = views(defense, problem, rounds, Threat("server", "paper"))
    assert holds(view, rounds[1].params["conv1.weight" if "conv1.weight" in rounds[1].params else _first(rounds)])


def _first(rounds: tuple[Round, ...]) -> str:
    return next(iter(rounds[0].params))


def test_a_client_sees_no_upload_but_its_own_and_no_state() -> None:
    _, _, rounds = played("fedavg", participation=0.67)
    threat = Threat("client", "adaptive")
    seen = cut(rounds, threat)
    assert set(seen) == {r.index for r in rounds if 0 in r.participants}
    for s in seen.values():
        assert s.ups is None
        assert s.params is None
        assert s.secret is None
        assert s.own_up is not None


def test_an_eavesdropper_sees_the_wires_alone() -> None:
    _, _, rounds = played("dbcl")
    for s in cut(rounds, Threat("eavesdropper", "adaptive")).values():
        assert s.ups is not None
        assert s.params is None
        assert s.secret is None
        assert s.own_batch is None


def test_sealing_copies() -> None:
    problem, defense, rounds = played("fedavg")
    threat = Threat("server", "adaptive")
    readings = defense.readings(threat, cut(rounds, threat), (1,))
    assert not isinstance(readings, NotApplicable)
    view = View(
        threat,
        reading="upload",
        input_shape=problem.task.input_shape,
        n_classes=problem.task.n_classes,
        observations=readings[0].observations,
    )
    name = next(iter(view.observations[0].target))
    before = view.observations[0].target[name].clone()
    seal(view).observations[0].target[name].zero_()
    assert torch.equal(view.observations[0].target[name], before)


def test_observations_say_how_many_images_hide_behind_them() -> None:
    problem, defense, rounds = played("fedavg")
    for party in PARTIES:
        (view,) = views(defense, problem, rounds, Threat(party, "adaptive"))
        for o in view.observations:
            assert o.images == sum(images_behind(problem.task, c) for c in o.clients)
            assert 0 not in o.clients
