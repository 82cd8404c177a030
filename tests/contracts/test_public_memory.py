"""What is public of a client's memory: what it holds whatever its samples were."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from helpers.disguises import RoundPad
from torch import Tensor

from fedarena.contracts.defense import Defense
from fedarena.contracts.public_memory import public_memory
from fedarena.contracts.transcript import Round, cut
from fedarena.core.options import NoOptions
from fedarena.core.rng import Rng
from fedarena.core.threat import Threat
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.federation import rounds
from fedarena.problem.problem import build
from fedarena.testing.federations import spec_of
from fedarena.testing.same import same

SERVER = Threat("server", "adaptive")


class Remembering(FedAvg):
    """Clients remember the number of the round, the length of their last upload, or both."""

    kept: tuple[str, ...] = ()

    def client(self, down: Any, batch: Any, memory: Any, noise: Any) -> Any:
        up, _ = super().client(down, batch, {}, {})
        t = memory["round"] if "round" in memory else torch.zeros((), dtype=torch.int64)
        known: Mapping[str, Tensor] = {"round": t + 1, "length": next(iter(up.values())).norm()}
        return up, {name: known[name] for name in self.kept}


def played(kind: type[FedAvg], **schedule: Any) -> tuple[Defense, tuple[Round, ...]]:
    problem = build(spec_of(3, model="mlp", **{"rounds": 5, "batch_size": 2, **schedule}), 0)
    defense = kind(NoOptions(), problem.task)
    return defense, rounds.run(defense, problem, Rng(0).child("federation"), watch=range(5)).rounds


def remembering(*names: str) -> type[Remembering]:
    return type("Remembering", (Remembering,), {"kept": names})


@pytest.mark.parametrize("t", [3, 0, 4])
def test_the_number_of_the_round_is_public(t: int) -> None:
    defense, written = played(remembering("round"))
    memory = public_memory(defense, cut(written, SERVER)[t], 0)
    assert {name: int(m) for name, m in memory.items()} == ({"round": t} if t else {})


@pytest.mark.parametrize("names", [(), ("length",)])
def test_without_anything_public_there_is_no_memory(names: tuple[str, ...]) -> None:
    defense, written = played(remembering(*names))
    assert public_memory(defense, cut(written, SERVER)[3], 0) == {}


def test_beside_what_is_public_the_rest_is_what_some_client_can_remember() -> None:
    defense, written = played(remembering("round", "length"))
    memory = public_memory(defense, cut(written, SERVER)[3], 0)
    assert int(memory["round"]) == 3
    assert 0 < float(memory["length"]) < 100


def test_who_is_sampled_by_chance_may_have_played_in_any_number_of_rounds() -> None:
    defense, written = played(remembering("round"), participation=0.5)
    (seen, *_) = [s for t, s in cut(written, SERVER).items() if t > 2]
    assert public_memory(defense, seen, seen.participants[0]) == {}


def test_a_simulator_finds_the_pad_of_each_round() -> None:
    defense, written = played(RoundPad)
    readings: Any = defense.readings(SERVER, cut(written, SERVER), (0, 2, 4))
    for o in readings[0].observations:
        r = written[o.round]
        x, y = r.batches[r.participants.index(o.clients[0])].images()
        sent = o.simulate(x, torch.nn.functional.one_hot(y, 10).to(x))
        for name, value in o.target.items():
            torch.testing.assert_close(sent[name], value, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("names", [("round",), ("round", "length")])
def test_it_does_not_matter_which_round_is_asked_about_first(names: tuple[str, ...]) -> None:
    found = []
    for order in ((1, 4, 3), (3, 4, 1)):
        defense, written = played(remembering(*names))
        seen = cut(written, SERVER)
        found.append({t: public_memory(defense, seen[t], 0) for t in order})
    assert same(*found)
