"""FedZO: local steps against a loop in plain words, the fast form, what crosses the wire, and what parties see."""

from __future__ import annotations

from itertools import islice

import pytest
import torch
from helpers.baffle import one_round, watched
from helpers.dbcl import cnn, samples
from helpers.fedzo import make, start

from fedarena.contracts.transcript import cut
from fedarena.core.rng import Rng
from fedarena.core.tensors import flatten, rows, shaped
from fedarena.core.threat import Threat
from fedarena.defenses.baffle.wire import SEED
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.defenses.fedzo.sphere import sphere_directions
from fedarena.problem.task import Batch

LOCAL = {"local_epochs": 2, "batch_size": 4}


def of_client(defense, size=20, seed=0):
    task = defense.task
    return samples(task.input_shape, task.schedule, size, 3, Rng(seed).torch())


def slowly(defense, down, batch, seed):
    """W − W_local, each step written out in double precision: g is a sum over samples and directions apart."""
    o, schedule = defense.options, defense.task.schedule
    w = flatten(down).double()
    first = w.clone()
    for t, (x, y) in enumerate(zip(batch.x.double(), batch.y, strict=True)):
        v = list(islice(sphere_directions(defense.steps.seed_of_step(seed, t), len(w)), o.directions))
        g = torch.zeros_like(w)
        for xi, yi in zip(x, y, strict=True):  # b1
            for vk in v:  # b2

                def loss(at, xi=xi, yi=yi):
                    return defense.task.loss(shaped(at, down), xi[None], yi[None])

                g += len(w) / o.mu / (len(x) * len(v)) * (loss(w + o.mu * vk.double()) - loss(w)) * vk.double()
        w = w - schedule.lr * g
    return first - w


def test_local_steps_are_those_of_the_algorithm():
    defense = make(directions=6, precision="float64", schedule=LOCAL)
    down, batch = start(defense).params, of_client(defense)
    assert batch.x.shape[0] == 10  # five batches of four, twice
    up, memory = defense.client(down, batch, {}, {SEED: torch.tensor([5])})
    assert memory == {}
    assert torch.allclose(flatten(up).double(), slowly(defense, down, batch, 5), rtol=1e-3, atol=1e-5)


def test_steps_of_a_round_do_not_share_their_directions():
    defense = make(directions=1, precision="float64", schedule={"local_epochs": 1})
    down, batch = start(defense).params, of_client(defense, 8)
    ups = [
        flatten(defense.client(down, Batch(batch.x[:n], batch.y[:n]), {}, {SEED: torch.tensor([5])})[0]) for n in (1, 2)
    ]
    first, second = ups[0], ups[1] - ups[0]
    assert abs(float(torch.nn.functional.cosine_similarity(first, second, dim=0))) < 0.5


@pytest.mark.parametrize("schedule", [{}, LOCAL])
@pytest.mark.parametrize(("model", "shape"), [(None, (12,)), (cnn(), (1, 8, 8))])
def test_the_fast_form_is_the_plain_one(schedule, model, shape):
    defense = make(model=model, shape=shape, directions=7, precision="float64", schedule=schedule)
    down, batches = start(defense).params, [of_client(defense, n, n) for n in (20, 28)]
    noises = [defense.draw(Rng(0).child(c)) for c in range(2)]
    fast, _ = defense.clients(down, batches, [{}, {}], noises)
    for c in range(2):
        plain, _ = defense.client(down, batches[c], {}, noises[c])
        for name, value in plain.items():
            assert value.dtype == down[name].dtype
            assert torch.allclose(fast[name][c], value, rtol=1e-4, atol=1e-6)


def test_what_goes_up_is_as_large_as_the_model_and_holds_no_seed():
    defense = make(schedule=LOCAL)
    sent, _, ups, _, _ = one_round_of(defense)
    assert set(sent.down) == set(ups) == set(defense.steps.like)
    assert defense.sent_bytes(ups) == 3 * 4 * defense.steps.n


def one_round_of(defense):
    return one_round(defense, start(defense))


def test_many_directions_give_fedavg_s_round():
    """The error of g is √(d/b2) of the gradient's length: 0.19 with 5,000 directions in 179 dimensions."""
    defense = make(directions=5_000, precision="float64")
    sent, batches, ups, _, _ = one_round_of(defense)
    expected, _ = FedAvg(None, defense.task).clients(sent.down, batches, [{}] * 3, [{}] * 3)
    for up, gradient in zip(rows(ups), rows(expected), strict=True):
        relative = float((up - gradient).norm() / gradient.norm())
        assert relative == pytest.approx((defense.steps.n / 5_000) ** 0.5, rel=0.3)


def test_without_its_randomness_a_client_sends_what_fedavg_s_does():
    defense = make(schedule=LOCAL)
    down, batch = start(defense).params, of_client(defense)
    up = defense.client(down, batch, {}, {})[0]
    plain = FedAvg(None, defense.task).client(down, batch, {}, {})[0]
    assert all(torch.equal(up[name], plain[name]) for name in plain)


def test_a_changing_learning_rate_reaches_the_local_steps():
    changing = {**LOCAL, "lr_schedule": "steps", "lr_steps": (0.5,), "lr_gamma": 0.1}
    defense = make(directions=3, precision="float64", schedule=changing)
    down, batch, noise = start(defense).params, of_client(defense), {SEED: torch.tensor([5])}
    one = Batch(batch.x[:1], batch.y[:1])
    early, late = (flatten(defense.in_round(t).client(down, one, {}, noise)[0]) for t in (0, 3))
    assert torch.allclose(late, 0.1 * early, rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize("party", ["server", "eavesdropper", "client"])
def test_parties_read_an_upload_as_fedavg_s(party):
    defense = make(directions=5)
    rounds = watched(defense)
    threat = Threat(party, "adaptive", client=0)
    seen = cut(rounds, threat)
    (reading,) = defense.readings(threat, seen, [0])
    (observation,) = reading.observations
    (plain,) = FedAvg(None, defense.task).readings(threat, seen, [0])
    assert torch.equal(flatten(observation.target), flatten(plain.observations[0].target))
    if party != "client":
        assert torch.equal(flatten(observation.target), flatten({n: t[1] for n, t in rounds[0].ups.items()}))


def test_other_options_change_what_is_sent():
    base = make(directions=5)
    down, batch, noise = start(base).params, of_client(base), {SEED: torch.tensor([5])}

    def sent(**options):
        defense = make(**{"directions": 5, **options})
        return flatten(defense.client(down, batch, {}, noise)[0])

    usual = sent()
    assert torch.equal(usual, sent())
    for other in ({"directions": 6}, {"mu": 0.5}, {"precision": "float64"}):
        assert not torch.equal(usual, sent(**other)), other
