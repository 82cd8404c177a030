"""Sign DP: its messages against DP-SGD's, the vote against a loop, what a liar can do, and its promise."""

from __future__ import annotations

import math

import pytest
import torch
from helpers.baffle import one_round, watched
from helpers.dbcl import cnn, mlp, parameters

from fedarena.contracts.defense import Broadcast, Cohort, State
from fedarena.contracts.transcript import cut
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import flatten, rows
from fedarena.core.threat import NotApplicable, Threat
from fedarena.defenses.aggregators.median import Median
from fedarena.defenses.dp_sgd import card as dp_sgd
from fedarena.defenses.dp_sgd.protocol import DPSGD
from fedarena.defenses.sign_dp.card import Options
from fedarena.defenses.sign_dp.protocol import SignDP
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Task


def make(kind=SignDP, model=None, shape=(12,), rule=None, **options):
    schedule = Schedule(rounds=20, batch_size=4, lr=0.3)
    task = Task(model or mlp(), input_shape=shape, n_classes=3, sizes=(40, 40, 40), schedule=schedule)
    of = Options if kind is SignDP else dp_sgd.Options
    return kind(of(**{"sampling": "fixed", **options}), task, rule)


@pytest.mark.parametrize(("model", "shape"), [(None, (12,)), (cnn(), (1, 8, 8))])
@pytest.mark.parametrize("options", [{}, {"epsilon": None}, {"momentum": 0.3, "bound": "normalise"}])
def test_messages_are_the_signs_of_dp_sgd_s(model, shape, options):
    ours, theirs = (make(kind, model, shape, **options) for kind in (SignDP, DPSGD))
    state = State(parameters(ours.task.model, 0))
    _, batches, ups, memories, _ = one_round(ours, state)
    _, _, plain, remembered, _ = one_round(theirs, state)
    assert torch.equal(rows(ups), torch.where(rows(plain) >= 0, 1.0, -1.0))
    assert all(a.keys() == b.keys() for a, b in zip(memories, remembered, strict=True))
    noise = ours.draw(Rng(0).child("noise", 1))
    one = flatten(ours.client(state.params, batches[1], {}, noise)[0])
    assert (one == rows(ups)[1]).float().mean() > 0.99  # the fast form may round a gradient near 0 the other way


def stepped(defense, state, uploads):
    """W after a round with these rows of uploads."""
    like = state.params
    sizes = [w.numel() for w in like.values()]
    parts = uploads.split(sizes, dim=1)
    ups = {n: part.reshape(len(uploads), *w.shape) for (n, w), part in zip(like.items(), parts, strict=True)}
    cohort = Cohort(tuple(range(len(uploads))), torch.tensor([10.0, 40.0, 50.0, 1.0])[: len(uploads)])
    return flatten(defense.aggregate(state, Broadcast(like), ups, cohort, Rng(0)).params)


@pytest.mark.parametrize("n", [3, 4])
def test_the_server_steps_by_the_majority(n):
    """Four votes may tie, and then nothing moves; numbers of samples do not count."""
    defense = make(scale=0.5)
    state = State(parameters(defense.task.model, 0))
    uploads = torch.randn(n, defense.entries, generator=Rng(7).torch())
    w, after = flatten(state.params), stepped(defense, state, uploads)
    for i in range(defense.entries):
        votes = sum(1 if float(u) >= 0 else -1 for u in uploads[:, i])
        moved = 0.0 if votes == 0 else math.copysign(0.3 * 0.5, votes)
        assert float(after[i]) == pytest.approx(float(w[i]) - moved, abs=1e-6)


def test_a_corrupted_client_has_one_vote_whatever_it_sends():
    defense = make()
    state = State(parameters(defense.task.model, 0))
    uploads = torch.randn(3, defense.entries, generator=Rng(8).torch())
    results = []
    for lie in (-1.0, -1e30, math.nan):
        uploads[2] = lie
        results.append(stepped(defense, state, uploads))
    assert torch.equal(results[0], results[1])
    assert torch.equal(results[0], results[2])
    uploads[2] = 1.0
    assert not torch.equal(results[0], stepped(defense, state, uploads))


def test_it_promises_what_dp_sgd_does_and_takes_a_32nd_of_its_bytes():
    ours, theirs = (make(kind, epsilon=1.5, sampling="poisson") for kind in (SignDP, DPSGD))
    assert ours.guarantees() == theirs.guarantees()
    assert ours.guarantees()["epsilon_add_remove_tight"] <= 1.5
    ups = {n: torch.zeros(3, *p.shape) for n, p in ours.task.model.named_parameters()}
    assert (theirs.sent_bytes(ups), ours.sent_bytes(ups)) == (3 * 4 * 179, 3 * 23)


def test_a_client_is_told_no_mean_and_the_wire_shows_the_signs():
    defense = make()
    rounds = watched(defense)
    for party in ("server", "eavesdropper"):
        threat = Threat(party, "adaptive")
        (reading,) = defense.readings(threat, cut(rounds, threat), [0])
        assert torch.equal(flatten(reading.observations[0].target), rows(rounds[0].ups)[1])
    threat = Threat("client", "adaptive")
    found = defense.readings(threat, cut(rounds, threat), [0])
    assert isinstance(found, NotApplicable)
    assert "majority" in found.reason


def test_a_rule_is_refused():
    with pytest.raises(UserError, match="no aggregation rule"):
        make(rule=Median(None))
