"""What a message contains without samples is taken away first; every protocol's own messages stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from helpers.baffle import watched
from helpers.dbcl import mlp, parameters
from helpers.degenerate import Disguised

from fedarena.contracts.observation import Observation
from fedarena.contracts.public_parts import without_public_parts
from fedarena.contracts.transcript import cut
from fedarena.core import registry
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, flatten, scale
from fedarena.core.threat import FORMS, PARTIES, Form, NotApplicable, Threat
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Task
from fedarena.testing.defense_laws import played
from fedarena.testing.law import Method


def task(**schedule: Any) -> Task:
    times = Schedule(**{"rounds": 20, "batch_size": 4, "lr": 0.3, **schedule})
    return Task(mlp(), input_shape=(12,), n_classes=3, sizes=(20, 40, 40), schedule=times)


def before_and_after(defense: Any, form: Form = "adaptive") -> tuple[Sequence[Observation], Sequence[Observation]]:
    """The server's observations of the first of two rounds."""
    threat = Threat("server", form)
    state = defense.init(parameters(defense.task.model, 0), Rng(0).child("init"))
    seen = cut(watched(defense, 2, state), threat)
    readings = defense.readings(threat, seen, [0])
    if isinstance(readings, NotApplicable):
        return (), ()
    left = without_public_parts(readings, defense, threat, seen)
    assert not isinstance(left, NotApplicable)
    return [o for r in readings for o in r.observations], [o for r in left for o in r.observations]


@pytest.mark.parametrize("schedule", [{}, {"batch_size": 1}, {"local_epochs": 2, "lr": 0.05}])
def test_factors_and_summands_that_everybody_knows_are_taken_away(schedule: dict[str, Any]) -> None:
    (bare,), _ = before_and_after(FedAvg(None, task(**schedule)))
    (covered,), (left,) = before_and_after(Disguised(None, task(**schedule)))
    x, y = torch.rand(bare.images, 12), torch.eye(3)[torch.arange(bare.images) % 3]
    assert (flatten(covered.target) - flatten(bare.target)).norm() > 10 * flatten(bare.target).norm()
    for mine, plain in ((left.target, bare.target), (left.simulate(x, y), bare.simulate(x, y))):
        assert (flatten(mine) - flatten(plain)).norm() < 0.02 * flatten(plain).norm()


def test_the_paper_form_takes_nothing_away() -> None:
    (covered,), (left,) = before_and_after(Disguised(None, task()), "paper")
    assert left is covered


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", registry.registries()["defense"].names())
def test_what_a_shipped_protocol_sends_stays_as_it_is(name: str, form: Form) -> None:
    problem, defense, written = played(Method.of(registry.find("defense", name)))
    for party in PARTIES:
        threat = Threat(party, form)
        seen = cut(written, threat, problem.data_of(threat))
        readings = defense.readings(threat, seen, (1, 3))
        left = without_public_parts(readings, defense, threat, seen)
        if not isinstance(readings, NotApplicable) and not isinstance(left, NotApplicable):
            pairs = zip(readings, left, strict=True)
            assert all(a is b for r, of in pairs for a, b in zip(r.observations, of.observations, strict=True))


class Rotated(FedAvg):
    """Clients send their entries in another order, which everybody knows."""

    def client(self, down: Any, batch: Any, memory: Any, noise: Any) -> tuple[Tensors, Tensors]:
        up, memory = super().client(down, batch, memory, noise)
        return {name: t.flip(0) for name, t in up.items()}, memory


class Longer(FedAvg):
    """Clients send seven times their gradient."""

    def client(self, down: Any, batch: Any, memory: Any, noise: Any) -> tuple[Tensors, Tensors]:
        up, memory = super().client(down, batch, memory, noise)
        return scale(7.0, up), memory


@pytest.mark.parametrize("kind", [Rotated, Longer])
def test_uploads_of_another_kind_stay_as_they_are(kind: type[FedAvg]) -> None:
    kind.clients = FedAvg.__mro__[1].clients  # type: ignore[method-assign]
    (before,), (after,) = before_and_after(kind(None, task()))
    assert after is before


def test_the_estimate_and_the_noise_go_with_the_target() -> None:
    defense, threat = Disguised(None, task()), Threat("server", "adaptive")
    seen = cut(watched(defense, 2), threat)
    readings = defense.readings(threat, seen, [0])
    assert not isinstance(readings, NotApplicable)
    (reading,) = readings
    noisy = replace(reading, observations=tuple(replace(o, noise_std=1.0) for o in reading.observations))
    left = without_public_parts([noisy], defense, threat, seen)
    assert not isinstance(left, NotApplicable)
    (o,) = left[0].observations
    assert o.estimate is not None
    assert torch.equal(flatten(o.estimate), flatten(o.target))
    s, _ = defense.disguise(seen[0].down)
    assert o.noise_std == pytest.approx(1 / float(flatten(s).abs().median()), rel=0.05)
