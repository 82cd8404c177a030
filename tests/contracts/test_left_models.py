"""The model that clients led to alone, beside what they and the server really computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch

from fedarena.contracts.left_models import with_left_models
from fedarena.contracts.observation import Observation
from fedarena.contracts.transcript import Round, cut
from fedarena.core import registry
from fedarena.core.gradients import gradient
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, combine, flatten, row
from fedarena.core.threat import Form, NotApplicable, Party, Threat
from fedarena.federation import compose, rounds
from fedarena.problem.problem import build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec

MLP = registry.find("model", "mlp").parse({"widths": "8"})
SGD = {"rounds": 4, "batch_size": 4, "lr": 0.2}
LOCAL = {"rounds": 4, "batch_size": 4, "lr": 0.2, "local_epochs": 2, "local_samples": 8}


def seen_by(
    defense: str, party: Party, form: Form = "adaptive", **training: Any
) -> tuple[Sequence[Observation], dict[int, Round], Any]:
    """What a party sees of rounds 1 and 2 with its models, the rounds themselves, and the problem."""
    schedule = Schedule(**training)
    spec = ProblemSpec("digits", model="mlp", partition="iid", clients=3, model_options=MLP, schedule=schedule)
    problem = build(spec, 0)
    protocol = compose.make_defense(compose.parse_defense(defense), problem.task)
    run = rounds.run(protocol, problem, Rng(0).child("federation"), watch=range(4))
    threat = Threat(party, form)
    seen = cut(run.rounds, threat, problem.data_of(threat))
    (reading, *_) = made = protocol.readings(threat, seen, (1, 2))
    assert not isinstance(made, NotApplicable)
    return with_left_models(protocol, threat, seen, reading.observations), {r.index: r for r in run.rounds}, problem


def same(model: Any, expected: Tensors) -> bool:
    return torch.allclose(flatten(model.params), flatten(expected), atol=1e-5)


@pytest.mark.parametrize("party", ["server", "eavesdropper"])
@pytest.mark.parametrize("form", ["paper", "adaptive"])
def test_after_local_steps_it_is_the_client_s_own_model(party: Party, form: Form) -> None:
    """The broadcast less the upload, at a learning rate that changes from round to round."""
    observations, played, _ = seen_by("fedavg", party, form, **LOCAL, lr_schedule="cosine")
    for o in observations:
        now = played[o.round]
        upload = row(now.ups, now.participants.index(o.clients[0]))
        assert same(o.left, combine(1.0, now.down, -1.0, upload))


def test_of_a_gradient_it_is_one_step_along_it() -> None:
    observations, played, problem = seen_by("fedavg", "server", **SGD)
    for o in observations:
        now = played[o.round]
        x, y = now.batches[now.participants.index(o.clients[0])].images()
        assert same(o.left, combine(1.0, now.params, -0.2, gradient(problem.task.loss, now.params, x, y)))


def test_of_a_sum_it_is_the_server_s_next_model() -> None:
    for training in (SGD, LOCAL):
        observations, played, _ = seen_by("pairwise-masks", "server", **training)
        for o in observations:
            assert o.clients == (0, 1, 2)
            assert same(o.left, played[o.round].after)


def test_of_the_others_it_is_what_their_mean_leads_to() -> None:
    observations, played, _ = seen_by("fedavg", "client", **LOCAL)
    for o in observations:
        now = played[o.round]
        both = [combine(1.0, now.down, -1.0, row(now.ups, now.participants.index(c))) for c in o.clients]
        assert o.clients == (1, 2)
        assert same(o.left, combine(0.5, both[0], 0.5, both[1]))


def test_noise_on_an_upload_is_noise_on_its_model() -> None:
    (o, *_), played, _ = seen_by("gradient-noise", "server", **SGD)
    now = played[o.round]
    upload = row(now.ups, now.participants.index(o.clients[0]))
    assert same(o.left, combine(1.0, now.params, -0.2, upload))


def test_who_does_not_know_all_parameters_has_no_model() -> None:
    for party in ("server", "eavesdropper"):
        observations, *_ = seen_by("dbcl", party, **SGD)  # type: ignore[arg-type]
        assert [o.left for o in observations] == [None, None]


def test_the_loss_of_a_model_is_that_of_the_task() -> None:
    (o, *_), _, problem = seen_by("fedavg", "server", **SGD)
    x, y = problem.inputs(torch.arange(1200)), problem.y[:1200]
    assert o.left is not None
    losses = o.left.losses(x, y)
    assert losses.dtype == torch.float64
    assert float(losses.mean()) == pytest.approx(float(problem.task.loss(o.left.params, x, y)), abs=1e-5)
    assert float(losses[1100]) == pytest.approx(
        float(problem.task.loss(o.left.params, x[1100:1101], y[1100:1101])), abs=1e-5
    )
