"""What a client makes of PBPFL: gamma, the model, the canonical form and the labels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from helpers.pbpfl import MODELS, cosine, make, mlp, one_hot, play, relative, shard, start, views
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from torch import nn
from torch.func import vmap

from fedarena.contracts.defense import State
from fedarena.contracts.transcript import Seen, cut
from fedarena.core.rng import Rng
from fedarena.core.tensors import combine
from fedarena.core.threat import NotApplicable, Threat
from fedarena.defenses.pbpfl import client_readings as pbpfl_client
from fedarena.defenses.pbpfl import every_layer as pbpfl_every_layer
from fedarena.defenses.pbpfl.canonical_rows import directions, reading_the_input
from fedarena.defenses.pbpfl.client_readings import EVERY, FIRST
from fedarena.defenses.pbpfl.every_layer import change
from fedarena.defenses.pbpfl.gamma import (
    columns_leave_open,
    gamma_from_columns,
    gamma_from_labels,
    gammas_from_two,
    least_absolute,
)
from fedarena.defenses.pbpfl.gamma_estimate import estimate_gamma
from fedarena.defenses.pbpfl.wire import GAMMA, Masked
from fedarena.models.scaling.positive_scaling import canonical


def trained(defense, steps=400):
    """A state whose model has learnt what labels there are."""
    data, state = shard(defense), start(defense)
    shade = data.y.double().view(1, -1, *[1] * len(defense.task.input_shape)) / 3
    data = replace(data, x=0.3 * data.x + shade)
    params = {n: p.clone().requires_grad_() for n, p in state.params.items()}
    optimizer = torch.optim.Adam(params.values(), 0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        defense.task.loss(params, *data.images()).backward()
        optimizer.step()
    return replace(state, params={n: p.detach() for n, p in params.items()}), data


def opened(defense, down):
    return defense.wire.open(down)


@pytest.mark.parametrize(("model", "shape"), MODELS)
def test_gamma_from_own_labels(model, shape):
    defense = make(model(), shape)
    state, data = trained(defense)
    errors = []
    for t in range(10):
        sent = defense.broadcast(state, Rng(t))
        found = gamma_from_labels(opened(defense, sent.down), defense.wire.wide, defense.task.criterion, *data.images())
        errors.append(abs(found - float(sent.secret[GAMMA])))
    assert sorted(errors)[5] <= 1e-3, errors


def test_gamma_from_own_labels_is_least_squares():
    defense = make()
    sent, data = opened(defense, defense.broadcast(start(defense), Rng(0)).down), shard(defense)
    predicted, alpha = defense.wire.wide(sent.params, data.images()[0])
    design = (alpha[:, None] * sent.r_a).flatten()[:, None]
    target = (predicted - torch.nn.functional.one_hot(data.y[0], 3)).flatten()[:, None]
    expected = torch.linalg.lstsq(design, target).solution
    found = gamma_from_labels(sent, defense.wire.wide, defense.task.criterion, *data.images())
    assert found == pytest.approx(float(expected), rel=1e-9)


@pytest.mark.parametrize("bias", [True, False])
def test_projection_leaves_all_directions_of_the_output_but_one(bias):
    """Less γ r_a or not, the projected layer is one; so are its outputs but for their part along r_a."""
    defense = make(mlp(bias=bias), (12,))
    state, data = trained(defense)
    sent = defense.broadcast(state, Rng(0))
    masked, gamma = opened(defense, sent.down), float(sent.secret[GAMMA])
    projected = masked.projected()
    again = replace(masked, params=masked.without(gamma)).projected()
    assert relative(projected, again) < 1e-12
    assert set(projected) == set(masked.params)
    unit = masked.r_a / masked.r_a.norm()
    plain, found = (defense.task.outputs(p, data.images()[0]) for p in (state.params, projected))
    torch.testing.assert_close(found, plain - torch.outer(plain @ unit, unit), rtol=1e-9, atol=1e-9)
    assert float((plain @ unit).abs().max()) > 1e-3


@pytest.mark.parametrize("bias", [True, False])
def test_gamma_from_columns_alone(bias):
    defense = make(nn.Sequential(nn.Linear(12, 400), nn.ReLU(), nn.Linear(400, 3, bias)))
    for t in range(5):
        sent = defense.broadcast(start(defense), Rng(t))
        assert gamma_from_columns(opened(defense, sent.down)) == pytest.approx(float(sent.secret[GAMMA]), abs=0.02)


def test_columns_leave_open_what_is_between_their_middle_ranks():
    weight = torch.arange(101, dtype=torch.float64)[None] / 10  # medians of 101: ranks 33 and 67, 17 from the middle
    sent = Masked({"w": weight}, torch.ones(1, dtype=torch.float64), ("w",))
    assert gamma_from_columns(sent) == 5.0
    assert [columns_leave_open(sent, g) for g in (3.2, 3.4, 5.0, 6.6, 6.8)] == [False, True, True, True, False]
    few = replace(sent, params={"w": weight[:, :4]})
    assert [columns_leave_open(few, g) for g in (-0.1, 0.0, 0.3, 0.31)] == [False, True, True, False]


def test_labels_that_columns_belie_are_not_believed():
    """A model that has learned nothing: its outputs are small and have nothing to do with the labels."""
    defense = make(nn.Sequential(nn.Linear(12, 400), nn.ReLU(), nn.Linear(400, 3)))
    data, errors = shard(defense), []
    fresh = State({n: 0.05 * p for n, p in start(defense).params.items()})
    for t in range(5):
        sent = defense.broadcast(fresh, Rng(t))
        alone = {0: Seen(0, participants=(0, 1, 2), down=sent.down, own_data=data)}
        truth = float(sent.secret[GAMMA])
        labels = gamma_from_labels(
            opened(defense, sent.down), defense.wire.wide, defense.task.criterion, *data.images()
        )
        assert estimate_gamma(defense, defense.wire, alone, 0) == gamma_from_columns(opened(defense, sent.down))
        errors.append((abs(estimate_gamma(defense, defense.wire, alone, 0) - truth), abs(labels - truth)))
    assert sum(ours for ours, _ in errors) < 0.3 * sum(theirs for _, theirs in errors), errors


@pytest.mark.parametrize("bias", [True, False])
def test_two_broadcasts_of_one_model_give_gamma_exactly(bias):
    defense = make(mlp(bias))
    state = start(defense)
    sent, other = defense.broadcast(state, Rng(0)), defense.broadcast(state, Rng(1))
    found = gammas_from_two(opened(defense, sent.down), opened(defense, other.down), defense.wire.plan)
    assert found == pytest.approx([float(sent.secret[GAMMA]), float(other.secret[GAMMA])], abs=1e-9)


@pytest.mark.parametrize(("model", "shape"), MODELS)
def test_two_broadcasts_err_by_one_update(model, shape):
    defense = make(model(), shape, schedule={"lr": 0.01})
    rounds, _ = play(defense, 2)
    a, b = (opened(defense, r.down) for r in rounds)
    truth = [float(r.secret[GAMMA]) for r in rounds]
    assert gammas_from_two(a, b, defense.wire.plan) == pytest.approx(truth, abs=5e-3)


@pytest.mark.parametrize("bias", [True, False])
def test_two_broadcasts_give_gamma_where_a_round_moved_few_columns(bias):
    defense = make(mlp(bias))
    state = start(defense)
    moved = {n: p.clone() for n, p in state.params.items()}
    moved[defense.wire.additive[0]][:, :2] += (
        0.5 * torch.randn(3, 2, generator=torch.Generator().manual_seed(0)).double()
    )
    sent, other = defense.broadcast(state, Rng(0)), defense.broadcast(replace(state, params=moved), Rng(1))
    found = gammas_from_two(opened(defense, sent.down), opened(defense, other.down), defense.wire.plan)
    assert found == pytest.approx([float(sent.secret[GAMMA]), float(other.secret[GAMMA])], abs=1e-4)


@given(st.integers(0, 2**32 - 1), st.integers(12, 60), st.floats(0, 0.4))
def test_the_least_sum_of_absolutes_is_that_of_a_linear_programme(seed, n, share):
    rng = np.random.default_rng(seed)
    design, wild = rng.normal(size=(n, 2)), rng.random(n) < share
    target = design @ rng.normal(size=2) + rng.normal(size=n) * np.where(wild, 3, 1e-2)
    costs = np.r_[np.zeros(2), np.ones(n)]  # of x and of bounds on the residuals
    below = np.block([[design, -np.eye(n)], [-design, -np.eye(n)]])
    best = linprog(costs, below, np.r_[target, -target], bounds=[(None, None)] * 2 + [(0, None)] * n)
    found = least_absolute(torch.tensor(design), torch.tensor(target)).numpy()
    assert np.abs(design @ found - target).sum() <= 1.01 * best.fun + 1e-9


@pytest.mark.parametrize("party", ["client", "eavesdropper"])
@pytest.mark.parametrize("history", [0, 1])
@pytest.mark.parametrize(("model", "shape"), MODELS)
def test_disclosures(model, shape, history, party):
    defense = make(model(), shape, gamma_scale=20, schedule={"lr": 1e-3})
    state, data = trained(defense)
    rounds, _ = play(defense, 2, state=state)
    x = data.images()[0]
    plain = defense.task.outputs(rounds[1].params, x)

    def agreement(form):
        seen = cut(rounds[1 - history :], Threat(party, form), data if party == "client" else None)
        (found,) = defense.disclosures(Threat(party, form), seen, [1])
        assert set(found.params) == set(state.params)
        agree = (defense.task.outputs(found.params, x).argmax(1) == plain.argmax(1)).double().mean()
        return float(agree), found.secrets

    (naive, nothing), (adaptive, secrets) = agreement("paper"), agreement("adaptive")
    assert nothing == {}
    assert list(secrets) == [GAMMA]
    assert adaptive > naive
    if party == "client" or history:
        assert adaptive >= 0.99
    assert isinstance(defense.disclosures(Threat("server", "paper"), {}, [0]), NotApplicable)
    assert isinstance(defense.disclosures(Threat("client", "paper"), {}, [0]), NotApplicable)


@pytest.mark.parametrize(("model", "shape"), MODELS)
def test_the_canonical_form_shows_the_update_of_the_hidden_layers(model, shape):
    defense = make(model(), shape, sizes=(8, 12))
    rounds, _ = play(defense, 4)
    reading, same = views(defense, rounds, "client")
    assert [(one.name, len(one.observations)) for one in (reading, same)] == [(EVERY, 3), (FIRST, 3)]
    assert all(
        cosine(a.estimate, b.estimate) > 1 - 1e-9 for a, b in zip(reading.observations, same.observations, strict=True)
    )
    for o, r in zip(reading.observations, rounds, strict=False):
        before, after = (canonical(defense.wire.plan, p) for p in (r.params, r.after))
        truth = defense.wire.hidden(combine(1.0, before, -1.0, after))
        assert (o.clients, o.estimate_of.name) == ((1,), "canonical update")
        assert set(o.estimate) == set(truth)
        assert cosine(o.estimate, truth) >= 0.999
    (naive,) = views(defense, rounds, "client", "paper")
    plain = torch.func.grad(defense.task.loss)(rounds[0].params, *rounds[0].batches[1].images())
    assert cosine(naive.observations[0].estimate, plain) < 0.5


@pytest.mark.parametrize("which", [0, 1], ids=[EVERY, FIRST])
@pytest.mark.parametrize("sizes", [(8, 8), (8, 12), (8, 12, 20)])
@pytest.mark.parametrize(("model", "shape"), MODELS)
def test_the_canonical_form_moves_as_the_true_samples_say(model, shape, sizes, which, monkeypatch):
    """Up to the error of γ̂, which is put out of the way, as is what units that no sample activates get."""
    defense = make(model(), shape, sizes=sizes)
    rounds, _ = play(defense, 2)
    monkeypatch.setattr(pbpfl_client, "estimate_gamma", lambda defense, wire, seen, t: float(rounds[t].secret[GAMMA]))
    monkeypatch.setattr(pbpfl_every_layer, "FAINT", 1e-12)
    (o,) = views(defense, rounds, "client")[which].observations
    assert o.clients == tuple(range(1, len(sizes)))
    share = torch.tensor(sizes[1:]).double() / sum(sizes[1:])
    each = [torch.func.grad(defense.task.loss)(rounds[0].params, *b.images()) for b in rounds[0].batches[1:]]
    ((bias, found),) = o.output_gradient.items()
    assert torch.allclose(found, sum(s * g[bias] for s, g in zip(share, each, strict=True)), atol=1e-6)
    others = [one_hot(b) for b in rounds[0].batches[1:]]
    x, y = (torch.cat(parts) for parts in zip(*others, strict=True))
    assert relative(o.simulate(x, y), o.target) <= 1e-6
    assert relative(o.simulate(x.flip(-1), y), o.target) > 0.01
    found = vmap(o.simulate)(torch.stack([x, x]), torch.stack([y, y]))
    assert all(torch.allclose(*both) for both in found.values())


@pytest.mark.parametrize(("model", "shape"), [*MODELS, (lambda: mlp(False), (12,))])
def test_lengths_of_units_need_not_be_known(model, shape, monkeypatch):
    """However the hidden units were scaled, the true gradient moves C as it moved."""
    monkeypatch.setattr(pbpfl_every_layer, "FAINT", 1e-12)
    defense = make(model(), shape)
    state, data = start(defense), shard(defense)
    x, y = data.images()[0], one_hot(data)[1]
    for spread in (1.0, 1.6):
        g = torch.Generator().manual_seed(0)
        factors = defense.wire.plan.factors(
            [spread ** torch.randn(n, generator=g).double() for n in defense.wire.plan.sizes]
        )
        params = {name: p * factors[name] for name, p in state.params.items()}
        gradient = torch.func.grad(defense.task.loss)(params, x, y)
        c, after = (canonical(defense.wire.plan, p) for p in (params, combine(1.0, params, -0.01, gradient)))
        at_c = torch.func.grad(defense.task.loss)(c, x, y)
        moved = combine(1.0, c, -1.0, after)
        assert relative(change(defense.wire.plan, c, at_c, 0.01, after), moved) <= 1e-6
        wrong = torch.func.grad(defense.task.loss)(c, x.flip(-1), y)
        assert relative(change(defense.wire.plan, c, wrong, 0.01, after), moved) > 1e-3


class Joined(nn.Module):
    """A dense layer added to a flattened convolution: 4 rows of the one have the factor of one channel of the other."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.o = nn.Conv2d(1, 5, 7), nn.Linear(64, 20), nn.Linear(20, 3)

    def forward(self, x):
        return self.o(torch.relu(self.a(x).flatten(1) + self.b(x.flatten(1))))


def test_rows_that_have_one_factor_are_one_unit():
    defense = make(Joined(), (1, 8, 8), sizes=(8, 8), schedule={"lr": 0.01})
    rounds, _ = play(defense, 2)
    (params, after), x, y = (
        [canonical(defense.wire.plan, p) for p in (rounds[0].params, rounds[0].after)],
        *one_hot(rounds[0].batches[0]),
    )
    other = one_hot(rounds[0].batches[1])
    plain = [torch.func.grad(defense.task.loss)(params, *batch) for batch in ((x, y), other)]
    found = change(defense.wire.plan, params, combine(0.5, plain[0], 0.5, plain[1]), 0.01, after)
    assert relative(found, combine(1.0, params, -1.0, after)) <= 0.05
    assert set(views(defense, rounds, "client")[0].observations[0].simulate(x, y)) == set(params)


@pytest.mark.parametrize("which", ["dead", "silent"])
def test_units_that_show_nothing_leave_values_and_gradients_finite(which):
    defense = make(mlp(), sizes=(1, 1), schedule={"batch_size": 1})
    state = start(defense, dtype=torch.float32)
    params = {name: p.clone() for name, p in state.params.items()}
    if which == "dead":
        params["0.weight"][3], params["0.bias"][3] = 0, 0
    else:
        params["2.bias"] -= 50
    rounds, _ = play(defense, 2, dtype=torch.float32, state=replace(state, params=params))
    simulate = views(defense, rounds, "client")[0].observations[0].simulate
    x = torch.rand(3, 1, 12).requires_grad_()
    found = vmap(simulate)(x, torch.eye(3)[:, None])
    (gradient,) = torch.autograd.grad(sum(t.square().sum() for t in found.values()), x)
    assert all(torch.isfinite(t).all() for t in (gradient, *found.values()))


def test_the_search_follows_the_lengths_that_a_candidate_implies():
    """Gradients go through λ and a, too: they are those of finite differences."""
    defense = make(mlp(), sizes=(1, 1), schedule={"batch_size": 1})
    rounds, _ = play(defense, 2)
    simulate = views(defense, rounds, "client")[0].observations[0].simulate
    y = one_hot(rounds[0].batches[0])[1]
    x = torch.rand(1, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: tuple(simulate(x, y).values()), (x,), eps=1e-7, atol=1e-4, rtol=1e-3)


def test_a_layer_that_only_rounding_moved_counts_next_to_nothing():
    plan, c = make().wire.plan, start(make()).params
    sizes = pbpfl_every_layer.sizes_of(plan, {name: 1e-9 * p for name, p in c.items()}, c)
    assert all(
        size == pytest.approx(1e-5 * float(pbpfl_every_layer.rows_of(c, name).norm())) for name, size in sizes.items()
    )


def test_a_unit_that_no_sample_activates_gets_its_layers_ratio():
    rows = torch.tensor([[3.0, 0.0], [2.0, 0.0], [0.0, 0.0]]).double()
    found = pbpfl_every_layer.ratios(2 * rows, rows, torch.tensor([[0.0, 1.0]]).double())
    assert found.tolist() == pytest.approx([2.0, 2.0, 2.0])
    still = pbpfl_every_layer.ratios(0 * rows, 0 * rows, torch.tensor([[0.0, 1.0]]).double())
    assert still.tolist() == [1.0, 1.0, 1.0]


def test_directions_forget_length_and_what_lies_along_the_row():
    c = {"a.weight": torch.tensor([[1.0, 0.0], [0.0, 1.0]]).double()}
    change = {"a.weight": torch.tensor([[5.0, 2.0], [0.0, 3.0]]).double()}
    found = directions(change, c, ("a",), {"a": torch.tensor([7.0, 1.0]).double()})["a"]
    assert found.tolist() == [[0.0, 7.0], [0.0, 0.0]]


def test_a_client_needs_two_rounds_and_company():
    defense = make(sizes=(8, 12))
    rounds, _ = play(defense, 2)
    assert isinstance(views(defense, rounds[:1], "client"), NotApplicable)
    alone = make(sizes=(8,))
    assert isinstance(views(alone, play(alone, 2)[0], "client"), NotApplicable)
    adam = make(sizes=(8, 12), schedule={"server_optimizer": "adam"})
    assert "Adam" in views(adam, play(adam, 2)[0], "client").reason
    median = make(sizes=(8, 12, 20), name="pbpfl+median")
    assert "rule" in views(median, play(median, 2)[0], "client").reason


def test_which_layers_read_the_input():
    assert reading_the_input(make().wire.plan) == ("0",)
    single = make(nn.Sequential(nn.Linear(12, 3)), sizes=(8, 12))
    assert reading_the_input(single.wire.plan) == ()
    (only,) = views(single, play(single, 2)[0], "client")
    assert (only.name, only.observations[0].estimate) == (EVERY, None)
