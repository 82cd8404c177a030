"""Rules that take one upload whole: every client is sent it, and nothing else comes between."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from fedarena.contracts.defense import Defense
from fedarena.contracts.transcript import cut
from fedarena.core import registry
from fedarena.core.rng import Rng
from fedarena.core.tensors import row
from fedarena.core.threat import FORMS, Form, NotApplicable, Threat
from fedarena.federation import compose
from fedarena.federation import rounds as federation
from fedarena.federation.rounds import Run
from fedarena.problem.problem import build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec

ROUNDS = 14


def played(defense: str, options: dict[str, str] | None = None, **schedule: Any) -> tuple[Defense, Run]:
    """Five clients, of whom the server expects one to be corrupted."""
    times = Schedule(**{"rounds": ROUNDS, "batch_size": 4, "lr": 0.5, **schedule})
    model = registry.find("model", "mlp").parse({"widths": "16"})
    given = build(
        ProblemSpec(
            "digits", model="mlp", partition="iid", clients=5, model_options=model, schedule=times, assumed_corrupted=1
        ),
        0,
    )
    made = compose.make_defense(compose.parse_defense(defense, options or {}), given.task)
    return made, federation.run(made, given, Rng(0).child("federation"), watch=range(ROUNDS))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("defense", "options"), [("krum", {}), ("multi-krum", {"m": "1"})], ids=["krum", "multi-krum, m = 1"]
)
def test_a_client_sees_what_was_picked_as_it_was_sent_unless_it_is_its_own(
    defense: str, options: dict[str, str], form: Form
) -> None:
    made, run = played(defense, options)
    threat = Threat("client", form)
    found = made.readings(threat, cut(run.rounds, threat), range(ROUNDS - 1))
    assert not isinstance(found, NotApplicable)
    (reading,) = found
    picked = {r.index: r.averaged for r in run.rounds[:-1]}
    assert all(len(one) == 1 for one in picked.values())
    assert any(c == threat.client for (c,) in picked.values())
    assert {o.round: o.clients for o in reading.observations} == {
        t: one for t, one in picked.items() if one != (threat.client,)
    }
    for o in reading.observations:
        r = run.rounds[o.round]
        sent = row(r.ups, r.participants.index(o.clients[0]))
        assert o.images == 4
        for name, value in o.target.items():
            torch.testing.assert_close(value, sent[name], rtol=1e-3, atol=1e-5)


def test_where_its_own_is_picked_every_time_there_is_nothing_to_read() -> None:
    made, run = played("krum")
    threat = Threat("client", "adaptive")
    own = [r for r in run.rounds if r.averaged == (threat.client,)]
    others = {t: s for t, s in cut(run.rounds, threat).items() if t in {r.index for r in own} | {own[0].index + 1}}
    found = made.readings(threat, others, [own[0].index])
    assert isinstance(found, NotApplicable)
    assert "in which another client's upload counted" in found.reason


@pytest.mark.parametrize("defense", ["median", "geometric-median", "nnm+krum", "multi-krum"])
def test_of_other_rules_nothing_is_said_of_whom_they_took(defense: str) -> None:
    made, run = played(defense)
    assert not made.picks
    assert {r.averaged for r in run.rounds} == {()}


def test_who_reads_the_wire_attacks_the_same_as_ever() -> None:
    made, run = played("krum")
    threat = Threat("server", "adaptive")
    found = made.readings(threat, cut(run.rounds, threat), (0, 1, 2))
    assert not isinstance(found, NotApplicable)
    assert [o.clients for o in found[0].observations] == [(r.victim,) for r in run.rounds[:3]]
