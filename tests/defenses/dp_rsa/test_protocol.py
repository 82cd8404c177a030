"""DP-RSA: three rounds against a loop over numbers, what a liar can do, its promise, and what parties see."""

from __future__ import annotations

import math

import pytest
import torch
from helpers.baffle import one_round, watched
from helpers.dp_rsa import make, start
from torch.func import grad

from fedarena.contracts.defense import Broadcast, Cohort
from fedarena.contracts.transcript import cut
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import flatten, shaped
from fedarena.core.threat import Threat
from fedarena.defenses.aggregators.median import Median
from fedarena.defenses.dp_rsa.protocol import FLIPS, LOCAL


def slowly(defense, state, rounds):
    """W after the rounds, every client and entry by itself; clients' samples and flips as `one_round` draws them."""
    o, lr, like = defense.options, defense.task.schedule.lr, state.params
    w = flatten(state.params).tolist()
    local = [list(w) for _ in defense.task.sizes]
    for batches, flips in rounds:
        votes = [0.0] * len(w)
        for c, batch in enumerate(batches):
            g = flatten(grad(defense.task.loss)(shaped(torch.tensor(local[c]), like), batch.x[0], batch.y[0])).tolist()
            for i in range(len(w)):
                local[c][i] -= lr * g[i]
                s = (1 if w[i] - local[c][i] >= 0 else -1) * (flips[c][i] if flips else 1)
                local[c][i] += lr * o.penalty * s
                votes[i] += s
        w = [w[i] - lr * (o.decay * w[i] + o.penalty * votes[i]) for i in range(len(w))]
    return torch.tensor(w), [torch.tensor(one) for one in local]


@pytest.mark.parametrize("epsilon", [None, 1.0])
def test_rounds_are_those_of_the_algorithm(epsilon):
    defense = make(epsilon=epsilon, penalty=0.05, decay=0.3)
    first = state = start(defense)
    memories, drawn = [{}] * 3, []
    for t in range(3):
        _, batches, _, memories, state = one_round(defense, state, t, memories)
        noises = [defense.draw(Rng(t).child("noise", c)) for c in range(3)]
        drawn.append((batches, [n[FLIPS].tolist() for n in noises] if epsilon else None))
    w, local = slowly(defense, first, drawn)
    agree = torch.isclose(flatten(state.params), w, atol=1e-5)
    assert agree.float().mean() > 0.98  # a sum within rounding of 0 may go either way
    for c in range(3):
        kept = flatten({name: memories[c][LOCAL + name] for name in first.params})
        assert torch.isclose(kept, local[c], atol=1e-4).float().mean() > 0.98


def test_the_first_message_without_flips_is_the_sign_of_the_gradient():
    defense = make(epsilon=None)
    sent, batches, ups, _, _ = one_round(defense, start(defense))
    g = grad(defense.task.loss)(sent.down, batches[1].x[0], batches[1].y[0])
    assert torch.equal(flatten({n: t[1] for n, t in ups.items()}), flatten(g).sign())


def test_a_corrupted_client_has_one_vote_whatever_it_sends():
    defense = make(epsilon=None)
    state = start(defense)
    ups = {n: torch.stack([torch.ones_like(w)] * 3) for n, w in state.params.items()}
    cohort = Cohort((0, 1, 2), torch.tensor([20.0, 30.0, 50.0]))

    def after(lie):
        sent = {n: t.clone() for n, t in ups.items()}
        for t in sent.values():
            t[2] = lie
        return flatten(defense.aggregate(state, Broadcast(state.params), sent, cohort, Rng(0)).params)

    assert torch.equal(after(-1.0), after(-1e30))
    assert torch.equal(after(-1.0), after(math.nan))
    lr, o = 0.1, defense.options
    expected = flatten(state.params) * (1 - lr * o.decay) - lr * o.penalty * (1 + 1 - 1)
    assert torch.allclose(after(-1e30), expected, atol=1e-6)


def test_the_promise_counts_every_sign():
    """179 entries in four rounds."""
    promise = make(epsilon=0.4).guarantees()
    assert promise["epsilon_all"] == pytest.approx(0.4 * 179 * 4)
    assert promise["kept"] / (1 - promise["kept"]) == pytest.approx(math.exp(promise["epsilon_per_sign"]))
    assert make(epsilon=None).guarantees() == {}


def test_messages_take_one_bit_an_entry():
    defense = make()
    _, _, ups, _, _ = one_round(defense, start(defense))
    assert defense.sent_bytes(ups) == 3 * 23  # ⌈179/8⌉ each


@pytest.mark.parametrize("epsilon", [None, 3.0])
def test_a_client_reads_the_others_mean_message_from_two_broadcasts(epsilon):
    defense = make(epsilon=epsilon, decay=0.5)
    rounds = watched(defense)
    threat = Threat("client", "adaptive", client=0)
    (reading,) = defense.readings(threat, cut(rounds, threat), [0])
    (seen,) = reading.observations
    mean = flatten({n: t[1:].mean(0) for n, t in rounds[0].ups.items()})
    assert torch.allclose(flatten(seen.target), mean, atol=2e-3)


def test_the_server_s_reading_is_what_the_true_samples_give():
    defense = make(epsilon=None)
    rounds = watched(defense)
    threat = Threat("server", "adaptive")
    (reading,) = defense.readings(threat, cut(rounds, threat), [0])
    (seen,) = reading.observations
    x, y = rounds[0].batches[seen.clients[0]].images()
    simulated = seen.simulate(x, torch.nn.functional.one_hot(y, 3).float())
    assert torch.equal(flatten(simulated), flatten(seen.target))


@pytest.mark.parametrize(
    ("schedule", "named"),
    [
        ({"local_epochs": 1}, "local-epochs"),
        ({"weight_decay": 0.1}, "weight_decay"),
        ({"server_optimizer": "adam"}, "server_optimizer"),
    ],
)
def test_schedules_that_it_does_not_have_are_refused(schedule, named):
    with pytest.raises(UserError, match=named):
        make(schedule=schedule)


def test_a_rule_is_refused():
    with pytest.raises(UserError, match="no aggregation rule"):
        make(rule=Median(None))
