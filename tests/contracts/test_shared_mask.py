"""What masks that repeat within a message leave in clear, through whatever protocol sends the message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from fedarena.contracts.defense import Defense
from fedarena.contracts.observation import Reading
from fedarena.contracts.readings import all_readings
from fedarena.contracts.shared_mask import NAME
from fedarena.contracts.transcript import Round, cut
from fedarena.core import registry
from fedarena.core.rng import Rng
from fedarena.core.tensors import flatten, row
from fedarena.core.threat import NotApplicable, Threat
from fedarena.federation import compose
from fedarena.federation import rounds as federation
from fedarena.problem.problem import Problem, build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec

PROTOCOLS: dict[str, dict[str, str]] = {
    "fedavg": {"repeat": "2", "spread": "1"},
    "dbcl": {"repeat": "2", "spread": "1"},
    "baffle": {"directions": "30", "repeat": "30", "spread": "1", "precision": "float64"},
}


def played(name: str, **options: str) -> tuple[Problem, Defense, Round]:
    model = registry.find("model", "mlp").parse({"widths": "12"})
    problem = build(
        ProblemSpec(
            "digits",
            model="mlp",
            partition="iid",
            clients=4,
            model_options=model,
            schedule=Schedule(rounds=1, batch_size=1),
        ),
        0,
    )
    defense = compose.make_defense(compose.parse_defense(f"{name}+zero-sum", options), problem.task)
    (r,) = federation.run(defense, problem, Rng(0).child("federation"), watch=(0,)).rounds
    return problem, defense, r


def read(defense: Defense, r: Round, party: Any, form: Any) -> Sequence[Reading]:
    threat = Threat(party, form)
    found = all_readings(defense, threat, cut([r], threat), (0,))
    return [] if isinstance(found, NotApplicable) else found


@pytest.mark.parametrize("party", ["server", "eavesdropper"])
@pytest.mark.parametrize("name", PROTOCOLS)
def test_differences_of_the_parts_of_one_client_s_upload_are_in_clear(name: str, party: str) -> None:
    options = PROTOCOLS[name]
    _, defense, r = played(name, **options)
    assert r.wire is not None
    found = {reading.name: reading for reading in read(defense, r, party, "adaptive")}
    assert list(found)[-1] == NAME
    (o,) = found[NAME].observations
    (victim,) = o.clients
    at = r.participants.index(victim)
    parts = int(options["repeat"])
    sent = flatten(row(r.ups, at)).reshape(parts, -1).double()
    wanted, told = (sent[1:] - sent[0]).flatten(), flatten(o.target).double()
    assert float(F.cosine_similarity(told, wanted, dim=0)) > 1 - 1e-5  # masks of size 1 were on it
    masked = r.wire[at].reshape(parts, -1).double()
    assert float(F.cosine_similarity(masked.flatten(), sent.flatten(), dim=0)) < 0.9
    # its simulator says the same of the samples that were there, and something else of others
    x, y = r.batches[at].images()
    one_hot = F.one_hot(y, 10).float()
    said = flatten(o.simulate(x, one_hot)).double()
    assert float((said - told).norm() / told.norm()) < 3e-3
    other = flatten(o.simulate(x.flip(-1), one_hot)).double()
    assert float((other - told).norm() / told.norm()) > 0.05


@pytest.mark.parametrize("name", PROTOCOLS)
def test_masks_of_their_own_and_other_parties_show_none(name: str) -> None:
    options = PROTOCOLS[name]
    _, defense, r = played(name, **options)
    for party, form in (("server", "paper"), ("eavesdropper", "paper"), ("client", "adaptive"), ("outsider", "paper")):
        assert NAME not in [reading.name for reading in read(defense, r, party, form)]
    _, single, once = played(name, **options | {"repeat": "1"})
    assert NAME not in [reading.name for reading in read(single, once, "server", "adaptive")]


def test_what_is_read_does_not_depend_on_the_masks() -> None:
    targets, wires = [], []
    for spread in ("1", "3"):
        _, defense, r = played("fedavg", repeat="2", spread=spread)
        (found,) = (reading for reading in read(defense, r, "server", "adaptive") if reading.name == NAME)
        targets.append(found.observations[0].target)
        wires.append(r.wire)
    assert not torch.equal(wires[0], wires[1])
    torch.testing.assert_close(targets[0], targets[1], atol=1e-5, rtol=0)


def test_noise_that_clients_add_is_in_both_parts_of_a_difference() -> None:
    _, defense, r = played("dp-sgd", repeat="2")
    (found,) = (reading for reading in read(defense, r, "server", "adaptive") if reading.name == NAME)
    assert found.observations[0].noise_std == pytest.approx(2**0.5 * defense.noise_std)
    assert defense.noise_std > 0
