"""What two broadcasts show a client and an outsider, by the server's rule."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
import torch

from fedarena.contracts.broadcast_difference import difference
from fedarena.contracts.defense import Defense
from fedarena.contracts.plain_readings import observation
from fedarena.contracts.transcript import Round, cut
from fedarena.core import registry
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, flatten, row, rows
from fedarena.core.threat import Threat
from fedarena.federation import compose
from fedarena.federation import rounds as federation
from fedarena.problem.problem import build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec

CLIENT, LISTENER = Threat("client", "adaptive"), Threat("eavesdropper", "adaptive")
TOLERANCE = 1e-4


@cache
def played(rule: str) -> tuple[Defense, list[Round]]:
    spec = ProblemSpec(
        "digits",
        model="mlp",
        partition="iid",
        clients=7,
        model_options=registry.find("model", "mlp").parse({"widths": "8"}),
        schedule=Schedule(rounds=3, batch_size=2),
        assumed_corrupted=1,
    )
    problem = build(spec, 0)
    defense = compose.make_defense(compose.parse_defense(rule), problem.task)
    return defense, [*federation.run(defense, problem, Rng(0).child("federation"), range(3)).rounds]


def shown(rule: str, threat: Threat, t: int) -> Tensors:
    defense, rounds = played(rule)
    seen = {i: replace(one, ups=None) for i, one in cut(rounds, threat).items()}
    return difference(defense, threat, seen[t], seen[t + 1])


@pytest.mark.parametrize("threat", [CLIENT, LISTENER])
def test_krum_shows_the_upload_that_it_picked(threat: Threat) -> None:
    r = played("krum")[1][1]
    picked = r.participants.index(r.averaged[0])
    assert torch.allclose(flatten(shown("krum", threat, 1)), flatten(row(r.ups, picked)), atol=TOLERANCE)


def test_a_client_takes_its_own_upload_off_a_mean() -> None:
    ups = rows(played("mean")[1][1].ups)
    assert torch.allclose(flatten(shown("mean", CLIENT, 1)), ups[1:].mean(0), atol=TOLERANCE)
    assert torch.allclose(flatten(shown("mean", LISTENER, 1)), ups.mean(0), atol=TOLERANCE)


def test_a_client_reads_a_median_as_an_outsider_does() -> None:
    ups = rows(played("median")[1][1].ups)
    for threat in (CLIENT, LISTENER):
        assert torch.allclose(flatten(shown("median", threat, 1)), ups.median(0).values, atol=TOLERANCE)


def test_a_picked_upload_is_what_its_samples_would_have_sent() -> None:
    defense, rounds = played("krum")
    r = rounds[0]
    one = r.averaged[0]
    seen = cut(rounds, LISTENER)
    read = observation(defense, LISTENER, seen[0], (one,), shown("krum", LISTENER, 0), None)
    x, y = r.batches[r.participants.index(one)].images()
    would = read.simulate(x, torch.nn.functional.one_hot(y, 10).to(x))
    assert read.images == len(y)
    assert torch.allclose(flatten(would), flatten(read.target), atol=TOLERANCE)
