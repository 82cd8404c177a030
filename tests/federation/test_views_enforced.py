"""Views, held to bytes: secrets of others are not in what an attack is given. The law of samples: `test_laws.py`."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from fedarena.contracts.defense import Defense
from fedarena.contracts.simulators import images_behind
from fedarena.contracts.transcript import Round, cut
from fedarena.contracts.view import View, seal
from fedarena.core import registry
from fedarena.core.threat import FORMS, PARTIES, NotApplicable, Threat
from fedarena.problem.problem import Problem
from fedarena.testing.defense_laws import holds, played, views
from fedarena.testing.law import Method


def run_of(name: str, **schedule: Any) -> tuple[Problem, Defense, tuple[Round, ...]]:
    return played(Method.of(registry.find("defense", name)), **schedule)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("party", ["client", "eavesdropper"])
def test_dbcl_hides_weights_from_all_but_the_server(party: Any, form: Any) -> None:
    problem, defense, rounds = run_of("dbcl")
    hidden = [name for name, t in rounds[0].params.items() if rounds[0].down[name].shape != t.shape]
    assert hidden
    for view in views(defense, problem, rounds, Threat(party, form)):
        assert not any(holds(view, r.params[name]) for r in rounds for name in hidden)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("party", ["client", "eavesdropper"])
def test_pbpfl_hides_weights_and_secrets_from_all_but_the_server(party: Any, form: Any) -> None:
    """What is left of them in the adaptive views is what the party works out: never these very numbers."""
    problem, defense, rounds = run_of("pbpfl")
    for view in views(defense, problem, rounds, Threat(party, form)):
        assert not any(holds(view, p) for r in rounds for name, p in r.params.items() if "weight" in name)
        assert not any(holds(view, t) for r in rounds for t in r.secret.values())


def test_the_server_does_hold_the_weights() -> None:
    """The search above can find what is there."""
    problem, defense, rounds = run_of("dbcl")
    (view,) = views(defense, problem, rounds, Threat("server", "paper"))
    assert holds(view, rounds[1].params["conv1.weight" if "conv1.weight" in rounds[1].params else _first(rounds)])


def _first(rounds: tuple[Round, ...]) -> str:
    return next(iter(rounds[0].params))


def test_a_client_sees_no_upload_but_its_own_and_no_state() -> None:
    _, _, rounds = run_of("fedavg", participation=0.67)
    threat = Threat("client", "adaptive")
    seen = cut(rounds, threat)
    assert set(seen) == {r.index for r in rounds if 0 in r.participants}
    for s in seen.values():
        assert s.ups is None
        assert s.params is None
        assert s.secret is None
        assert s.own_up is not None


def test_an_eavesdropper_sees_the_wires_alone() -> None:
    _, _, rounds = run_of("dbcl")
    for s in cut(rounds, Threat("eavesdropper", "adaptive")).values():
        assert s.ups is not None
        assert s.params is None
        assert s.secret is None
        assert s.own_batch is None


def test_sealing_copies() -> None:
    problem, defense, rounds = run_of("fedavg")
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
    problem, defense, rounds = run_of("fedavg")
    for party in PARTIES:
        (view,) = views(defense, problem, rounds, Threat(party, "adaptive"))
        for o in view.observations:
            assert o.images == sum(images_behind(problem.task, c) for c in o.clients)
            assert 0 not in o.clients
