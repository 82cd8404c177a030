"""What BAFFLE's adaptive form simulates: the true samples give what a client sent, at any sigma, format and level."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import pytest
import torch
from helpers.baffle import drawn, make, start, watched
from torch import nn

from fedarena.contracts.transcript import cut
from fedarena.core.rng import Rng
from fedarena.core.tensors import flatten
from fedarena.core.threat import NotApplicable, Threat
from fedarena.defenses.baffle import readings as baffle_views
from fedarena.defenses.baffle.directions import directions
from fedarena.defenses.baffle.simulators import SMALL, Differences, LocalSteps, Projections, rounded
from fedarena.problem.task import Batch

SERVER = Threat("server", "adaptive")


def relu_net():
    """Wide enough that many units are about to switch along any direction."""
    return nn.Sequential(nn.Linear(12, 150), nn.ReLU(), nn.Linear(150, 150), nn.ReLU(), nn.Linear(150, 3))


def observed(defense, rounds, victims=(0,)):
    """What the server is given, and the samples behind it."""
    (one,) = defense.readings(SERVER, cut(rounds, SERVER), victims)
    found = []
    for o in one.observations:
        x, y = rounds[o.round].batches[o.clients[0]].images()
        found.append((o, x, nn.functional.one_hot(y, 3).float()))
    return found


def error(simulate, o, x, y):
    a, b = flatten(simulate(x, y)), flatten(o.target)
    return float((a - b).norm() / b.norm())


# -- the batch level ------------------------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [1e-8, 1e-6, 1e-4, 1e-3, 1.001e-3, 1e-2, 0.5])
@pytest.mark.parametrize("scheme", ["forward", "central"])
def test_differences_are_those_of_a_client(sigma, scheme):
    """ReLUs switch within any sigma, of which the first order knows nothing."""
    defense = make(relu_net(), directions=40, sigma=sigma, scheme=scheme, precision="float64")
    ((o, x, y),) = observed(defense, watched(defense))
    assert error(o.simulate, o, x, y) < 1e-5
    assert (o.rough is not None) == (sigma <= SMALL)
    if sigma in (1e-3, 1e-2):
        assert error(o.rough, o, x, y) > 0.005


def test_the_first_order_is_the_limit_of_small_sigma():
    defense = make(directions=40, sigma=1e-8, precision="float64")
    ((o, x, y),) = observed(defense, watched(defense))
    assert isinstance(o.rough, Projections)
    assert error(o.rough, o, x, y) < 1e-5


@pytest.mark.parametrize("scheme", ["forward", "central"])
def test_float16_rounds_the_perturbed_parameters(scheme):
    """What is left are rounded activations and losses: at a large sigma little, at a small one everything."""
    errors = {}
    for sigma in (0.3, 1e-3):
        defense = make(relu_net(), directions=40, sigma=sigma, scheme=scheme, precision="float16")
        ((o, x, y),) = observed(defense, watched(defense))
        exact = Differences(o.simulate.plain, o.simulate.z, replace(defense.options, precision="float64"))
        errors[sigma] = error(o.simulate, o, x, y), error(exact, o, x, y)
    assert errors[0.3][0] < 0.01
    assert errors[0.3][0] < 0.8 * errors[0.3][1]
    assert errors[1e-3][0] > max(0.02, 5 * errors[0.3][0])


def test_rounding_is_that_of_the_format_and_has_the_identity_s_derivative():
    t = torch.randn(200, dtype=torch.float64).mul_(3).requires_grad_()
    for dtype in (torch.float16, torch.float32):
        assert torch.equal(rounded(t, dtype), t.detach().to(dtype).double())
        assert not torch.equal(rounded(t, dtype), t)
        (g,) = torch.autograd.grad(rounded(t, dtype).square().sum() / 2, t)
        assert torch.equal(g, rounded(t, dtype).detach())
    assert rounded(t, torch.float64) is t


@pytest.mark.parametrize("scheme", ["forward", "central"])
def test_derivatives_are_those_of_the_values(scheme):
    """Of a smooth network, through `vmap`, against steps in the samples."""
    defense = make(directions=15, sigma=0.05, scheme=scheme, precision="float64")
    ((o, x, y),) = observed(defense, watched(defense))
    way = torch.randn(x.shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    points = torch.stack([x, x / 2]).double().requires_grad_()
    values = torch.func.vmap(lambda p: o.simulate(p, y)["differences"].square().sum())(points)
    (g,) = torch.autograd.grad(values.sum(), points)
    for point, slope in zip(points.detach(), (g * way).flatten(1).sum(1), strict=True):
        up, down = (o.simulate(point + h * way, y)["differences"].square().sum() for h in (1e-5, -1e-5))
        assert float(slope) == pytest.approx(float((up - down) / 2e-5), rel=1e-5)


def test_the_simulators_of_a_reading_share_the_memory_of_one():
    defense = make(directions=10, precision="float64")
    found = observed(defense, watched(defense), victims=(0, 1))
    (first, *_), (second, *_) = found
    assert first.simulate.slot is second.simulate.slot
    for o, x, y in (found[0], found[1], found[0]):
        assert error(o.simulate, o, x, y) < 1e-5
        assert o.simulate.slot.of is o.simulate.z


# -- the epoch level ------------------------------------------------------------------------------------


def epochs(options, sizes=(8, 8, 8), **schedule):
    return make(relu_net(), directions=15, sizes=sizes, schedule={"local_epochs": 1, **schedule}, **options)


@pytest.mark.parametrize("sigma", [1e-4, 1e-2, 0.5])
@pytest.mark.parametrize("scheme", ["forward", "central"])
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_local_steps_are_replayed_at_any_sigma(sigma, scheme, optimizer):
    defense = epochs({"sigma": sigma, "scheme": scheme, "precision": "float64"}, client_optimizer=optimizer, lr=0.01)
    for o, x, y in observed(defense, watched(defense), victims=(0, 1)):
        assert isinstance(o.simulate, LocalSteps)
        assert error(o.simulate, o, x, y) < 1e-4
        assert (o.rough is not None) == (sigma <= SMALL)


def test_the_first_order_of_local_steps_is_a_start_and_no_more():
    defense = epochs({"sigma": 1e-2, "precision": "float64"}, lr=0.01)
    ((o, x, y),) = observed(defense, watched(defense))
    assert 0.01 < error(o.rough, o, x, y) < 0.5


@pytest.mark.parametrize("optimizer", ["momentum", "adam"])
def test_a_kept_optimiser_memory_is_known_in_the_first_round_alone(optimizer):
    defense = epochs({"optimizer_state": "kept", "precision": "float64"}, client_optimizer=optimizer, lr=0.01)
    rounds = watched(defense, 3)
    ((o, x, y),) = observed(defense, rounds, victims=(0, 1, 2))
    assert o.round == 0
    assert error(o.simulate, o, x, y) < 1e-4
    later = defense.readings(SERVER, cut(rounds, SERVER), (1, 2))
    assert isinstance(later, NotApplicable)
    assert "keeps its memory" in later.reason
    # Rounds of which nothing was seen may have been the client's first.
    assert isinstance(defense.readings(SERVER, cut(rounds[1:], SERVER), (1,)), NotApplicable)
    # A client that had not been sampled before begins with an empty memory.
    first = replace(rounds[0], participants=(0, 2), ups={n: t[[0, 2]] for n, t in rounds[0].ups.items()})
    fresh = watched(defense, 1)[0]
    (one,) = defense.readings(SERVER, cut([first, replace(fresh, index=1)], SERVER), (0, 1))
    assert [(seen.round, seen.clients) for seen in one.observations] == [(0, (2,)), (1, (1,))]


def test_a_client_s_own_number_of_directions_is_not_guessed():
    defense = epochs({"min_directions": 5, "precision": "float64"})
    found = defense.readings(SERVER, cut(watched(defense), SERVER), (0,))
    assert isinstance(found, NotApplicable)
    assert "how many directions" in found.reason
    paper = Threat("server", "paper")
    assert not isinstance(defense.readings(paper, cut(watched(defense), paper), (0,)), NotApplicable)


def test_several_local_epochs_need_the_client_s_order():
    """As the documentation has it: an order of one's own in the second epoch leaves the replay far off."""
    defense = epochs({"precision": "float64"}, local_epochs=2)
    sent = defense.broadcast(start(defense), Rng(0))
    x, y = (t[:8] for t in drawn(defense).images())
    z = torch.stack([torch.stack(list(islice(directions(seed, defense.wire.n), 15))) for seed in _seeds(defense, sent)])
    replay = LocalSteps(defense.task, defense.wire, {n: sent.down[n] for n in defense.wire.like}, z)
    simulated = flatten(replay(x, nn.functional.one_hot(y, 3).float()))
    errors = []
    for order in (torch.arange(8), torch.arange(8).flip(0)[[0, 4, 1, 5, 2, 6, 3, 7]]):
        both = torch.cat([torch.arange(8), order])
        batch = Batch(x[both].reshape(4, 4, 12), y[both].reshape(4, 4))
        seen = flatten(defense.client(sent.down, batch, {}, {})[0])
        errors.append(float((simulated - seen).norm() / seen.norm()))
    assert errors[0] < 1e-4
    assert errors[1] > 0.1


def _seeds(defense, sent):
    return [defense.wire.seed_of_step(int(sent.down["seed"]), t) for t in range(4)]


def test_more_directions_than_fit_are_refused(monkeypatch):
    defense = epochs({"precision": "float64"})
    monkeypatch.setattr(baffle_views, "MOST", 15 * 2 * defense.wire.n - 1)
    found = defense.readings(SERVER, cut(watched(defense), SERVER), (0,))
    assert isinstance(found, NotApplicable)
    assert "numbers for their directions" in found.reason
    monkeypatch.setattr(baffle_views, "MOST", 15 * 2 * defense.wire.n)
    assert not isinstance(defense.readings(SERVER, cut(watched(defense), SERVER), (0,)), NotApplicable)
