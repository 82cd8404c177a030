"""FetchSGD: rounds against Algorithm 1 by loops, what each party sees, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from helpers.baffle import one_round, watched
from helpers.dbcl import mlp, parameters

from fedarena.contracts.transcript import cut
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import flatten, nbytes
from fedarena.core.threat import NotApplicable, Threat
from fedarena.defenses.aggregators.median import Median
from fedarena.defenses.fetchsgd.card import Options
from fedarena.defenses.fetchsgd.protocol import FetchSGD
from fedarena.defenses.fetchsgd.wire import SKETCH, hashes_of
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Task


def make(schedule=None, rule=None, **options):
    times = Schedule(**{"rounds": 6, "batch_size": 4, "lr": 0.2, **(schedule or {})})
    task = Task(mlp(), input_shape=(12,), n_classes=3, sizes=(10, 40, 50), schedule=times)
    return FetchSGD(Options(**{"kept": 0.3, **options}), task, rule)


def start(defense):
    return defense.init(parameters(defense.task.model, 0), Rng(0).child("init"))


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("local_epochs", [0, 2])
def test_rounds_are_algorithm_1(momentum, local_epochs):
    """Several rounds, with sketches of clients' plain uploads and the server's loop written out."""
    defense = make({"local_epochs": local_epochs}, momentum=momentum)
    plain = FetchSGD.__mro__[1](None, defense.task)
    state = start(defense)
    memory = error = torch.zeros(1)
    w = flatten(state.params)
    for t in range(3):
        sent, batches, ups, _, after = one_round(defense, state, t)
        hashes = hashes_of(defense.options, sent.down)
        gradients = [flatten(plain.client(state.params, batch, {}, {})[0]) for batch in batches]
        for sketch, g in zip(ups[SKETCH], gradients, strict=True):
            assert torch.allclose(sketch, hashes.sketch(g), atol=1e-5)
        mean = sum(n / 100 * hashes.sketch(g) for n, g in zip((10, 40, 50), gradients, strict=True))
        memory = momentum * memory + mean
        error = error + defense.step_size * memory
        read = hashes.estimate(error)
        keep = sorted(range(len(read)), key=lambda i: -abs(float(read[i])))[: round(0.3 * hashes.columns)]
        change = torch.zeros_like(read)
        change[keep] = read[keep]
        error, w = error - hashes.sketch(change), w - change
        assert torch.allclose(flatten(after.params), w, atol=1e-5)
        state = after


def test_an_upload_has_the_bytes_of_the_sketch():
    defense = make(ratio=0.5, rows=5)
    sent, _, ups, _, _ = one_round(defense, start(defense))
    d = sum(p.numel() for p in start(defense).params.values())
    assert ups[SKETCH].shape == (3, 5, round(0.5 * d / 5))
    assert defense.sent_bytes(ups) == 3 * 4 * 5 * round(0.5 * d / 5)
    assert nbytes(sent.down) == 4 * d + 4


def test_all_clients_share_hash_functions_that_stay():
    defense = make()
    state = start(defense)
    first, second = (defense.broadcast(replace(state, round=t), Rng(t)).down for t in (0, 1))
    assert hashes_of(defense.options, first) is hashes_of(defense.options, second)
    other = defense.init(state.params, Rng(1).child("init"))
    assert not torch.equal(hashes_of(defense.options, first).signs, hashes_of(defense.options, other.extra).signs)


def test_what_each_party_reads():
    defense = make()
    rounds = watched(defense, state=start(defense))
    client = defense.readings(Threat("client", "adaptive"), cut(rounds, Threat("client", "adaptive")), [0])
    assert isinstance(client, NotApplicable)
    for party in ("server", "eavesdropper"):
        for form, name in (("paper", "unsketched"), ("adaptive", "upload")):
            threat = Threat(party, form)
            (reading,) = defense.readings(threat, cut(rounds, threat), [0])
            (observed,) = reading.observations
            assert reading.name == name
            assert ({*observed.target} == {SKETCH}) is (form == "adaptive")


def test_the_adaptive_reading_is_matched_by_the_victim_s_samples():
    defense = make()
    state = start(defense)
    _, batches, _, _, _ = one_round(defense, state)
    threat = Threat("server", "adaptive")
    (reading,) = defense.readings(threat, cut(watched(defense, state=state), threat), [0])
    (observed,) = reading.observations
    batch = batches[observed.clients[0]]
    labels = torch.nn.functional.one_hot(batch.y[0], 3).float()
    assert torch.allclose(observed.simulate(batch.x[0], labels)[SKETCH], observed.target[SKETCH], atol=1e-5)
    other = observed.simulate(batch.x[0] + 1, labels)[SKETCH]
    assert not torch.allclose(other, observed.target[SKETCH], atol=1e-3)


def test_a_rule_and_another_optimiser_are_refused():
    with pytest.raises(UserError, match="fetchsgd takes no aggregation rule"):
        make(rule=Median(None))
    with pytest.raises(UserError, match="server_optimizer' is adam, allowed with defense fetchsgd: sgd"):
        make({"server_optimizer": "adam"})
