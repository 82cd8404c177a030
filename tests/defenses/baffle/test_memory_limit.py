"""BAFFLE: a client's memory, and the limit under which it slices its work."""

from __future__ import annotations

import re

import pytest
import torch
from helpers.baffle import drawn, make, start
from helpers.dbcl import cnn, mlp

from fedarena.contracts.defense import Cohort
from fedarena.core.errors import UserError
from fedarena.core.peak_memory import peak_bytes
from fedarena.core.rng import Rng
from fedarena.defenses.baffle.protocol import DIFFERENCES
from fedarena.federation.client_memory import client_peak


def peak(defense, rounds=1):
    """Bytes that the harness counts for a client, at most."""
    state, memories, most = start(defense), [{}, {}], 0
    batch = drawn(defense)
    for t in range(rounds):
        sent = defense.broadcast(state, Rng(t))
        most = max(most, client_peak(defense, sent.down, batch, memories[0], {}))
        ups, memories = defense.clients(sent.down, [batch, batch], memories, [{}, {}])
        state = defense.aggregate(state, sent, ups, Cohort((0, 1), torch.tensor([0.5, 0.5])), Rng(t))
    return most


def test_a_client_slices_its_work_to_fit_its_memory():
    """Less memory, the same differences; too little is refused, and says what is needed."""
    wide = {"batch_size": 16}
    whole = make(cnn(), (1, 8, 8), directions=6, precision="float64", schedule=wide)
    needed = peak(whole)
    tight = make(cnn(), (1, 8, 8), directions=6, precision="float64", schedule={**wide, "client_memory": needed * 8e-7})
    assert peak(tight) <= 0.8 * needed
    sent = whole.broadcast(start(whole), Rng(0))
    a, b = (d.clients(sent.down, [drawn(whole)], [{}], [{}])[0][DIFFERENCES] for d in (whole, tight))
    assert torch.allclose(a, b, rtol=1e-4, atol=1e-9)
    with pytest.raises(UserError, match=r"option 'client-memory' is .* or more"):
        make(cnn(), (1, 8, 8), directions=6, schedule={**wide, "client_memory": 1e-6})


@pytest.mark.parametrize(
    ("options", "schedule"),
    [
        ({}, {}),
        ({"downlink": "scalars"}, {}),
        ({"downlink": "scalars"}, {"server_optimizer": "adam"}),
        ({}, {"local_epochs": 1, "client_optimizer": "adam"}),
        ({"optimizer_state": "kept"}, {"local_epochs": 1, "client_optimizer": "adam"}),
    ],
)
def test_a_limit_holds_in_later_rounds_too(options, schedule):
    """With what a client keeps: the model that it rebuilds, the server's moments, its own."""
    wide = {"batch_size": 4, **schedule}
    with pytest.raises(UserError, match="or more") as refused:
        make(mlp((784, 128, 3)), (784,), directions=6, schedule={**wide, "client_memory": 1e-6}, **options)
    least = float(re.search(r": ([\d.]+) or more", str(refused.value))[1])
    tight = make(mlp((784, 128, 3)), (784,), directions=6, schedule={**wide, "client_memory": least}, **options)
    needed = peak(tight, rounds=3)
    assert needed <= least * 1e6
    assert needed > 0.7 * least * 1e6  # what is refused could not have been done in much less


@pytest.mark.parametrize("level", [{}, {"local_epochs": 1}])
def test_a_client_alone_holds_one_direction_at_a_time(level):
    """Though dense chains and the estimate are faster with several, W + δ, δ and what a step makes is all it needs."""
    defense = make(mlp((784, 128, 3)), (784,), directions=40, schedule={"batch_size": 4, **level})
    assert peak(defense) < (8 if level else 4.5) * 4 * defense.wire.n
    assert peak(defense) < peak_of_clients(defense)


def peak_of_clients(defense):
    sent, batch = defense.broadcast(start(defense), Rng(0)), drawn(defense)
    return peak_bytes(lambda: defense.clients(sent.down, [batch], [{}], [{}]))[1]


def test_memory_does_not_grow_with_k():
    few, many = (peak(make(cnn(), (1, 8, 8), directions=k)) for k in (10, 200))
    assert many - few <= 16 * 190  # the results themselves
