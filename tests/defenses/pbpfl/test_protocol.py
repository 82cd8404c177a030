"""PBPFL: exactness of the recovered gradient on networks of every kind, and what each party sends and knows."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from helpers.pbpfl import SIZES, cnn, drawn, make, mean_gradient, mlp, play, relative, start
from helpers.scaling import networks
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.func import functional_call

from fedarena.contracts.defense import Cohort, State
from fedarena.contracts.transcript import weights
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import row, stack
from fedarena.defenses.pbpfl.wire import GAMMA, MASK, R_A, UPLOADS
from fedarena.problem.loss import Criterion


def recovered(defense, state, batch, seed=0):
    """(the gradient that the server recovers of one client, the plain one)."""
    sent = defense.broadcast(state, Rng(seed))
    up, _ = defense.client(sent.down, batch, {}, {})
    plain = torch.func.grad(defense.task.loss)(state.params, *batch.images())
    return row(defense.wire.recover(sent, stack([up]))[0], 0), plain


@settings(max_examples=150, deadline=None)
@given(networks(), st.integers(0, 999), st.sampled_from(["mse", "regression"]))
def test_the_recovered_gradient_is_the_plain_one(network, seed, loss):
    model, shape = network
    classes = 2 if loss == "mse" else 0
    if loss == "regression":
        model = nn.Sequential(model, nn.Linear(2, 1).double())
    defense = make(model, shape, classes=classes, schedule={"loss": loss})
    params = {n: p.detach().clone() for n, p in model.named_parameters()}
    found, plain = recovered(defense, State(params), drawn(defense, seed), seed)
    assert list(found) == list(plain)
    size = math.sqrt(sum(float(t.square().sum()) for t in plain.values()))
    assert relative(found, plain) <= 1e-9 or size < 1e-9


@pytest.mark.parametrize(
    "options",
    [
        {"r": "uniform"},
        {"r": "constant"},
        {"decades": 6},
        {"r_a": "normal", "gamma": "normal"},
        {"gamma_scale": 100},
        {"gamma": "cancelling"},
    ],
)
@pytest.mark.parametrize(("model", "shape"), [(mlp, (12,)), (cnn, (1, 8, 8))])
def test_under_every_law(model, shape, options):
    defense = make(model(), shape, **options)
    assert relative(*recovered(defense, start(defense), drawn(defense, 5))) <= 1e-9


@pytest.mark.parametrize("bias", [True, False])
def test_a_client_by_the_letter(bias):
    """Eqs. 6 to 8, 11, and σ and β as printed below Eq. 18, layer by layer, one sample at a time."""
    defense = make(mlp(bias))
    state, batch = start(defense), drawn(defense, 3)
    sent = defense.broadcast(state, Rng(1))
    r, gamma, r_a = [sent.secret[f"{MASK}{g}"] for g in range(2)], float(sent.secret[GAMMA]), sent.down[R_A]
    ones = [torch.ones(12, dtype=torch.float64), *r]
    weights_ = [state.params[f"{n}.weight"] for n in ("0", "2", "4")]
    for layer, (name, w) in enumerate(zip(("0", "2", "4"), weights_, strict=True)):
        left = [*r, torch.ones(3, dtype=torch.float64)][layer]
        masked = left[:, None] * w / ones[layer]
        added = gamma * r_a[:, None] if name == "4" else 0.0
        assert torch.allclose(sent.down[f"{name}.weight"], masked + added)
        if bias:
            added = gamma * r_a if name == "4" else 0.0
            assert torch.allclose(sent.down[f"{name}.bias"], left * state.params[f"{name}.bias"] + added)

    params = {n: t.clone().requires_grad_() for n, t in sent.down.items() if n != R_A}
    total = {kind: {n: torch.zeros_like(p) for n, p in params.items()} for kind in UPLOADS}
    for x, y in zip(*batch.images(), strict=True):
        body = defense.task.model[:-1]
        h = functional_call(body, {n: p for n, p in params.items() if not n.startswith("4")}, (x,))
        predicted = params["4.weight"] @ h + (params["4.bias"] if bias else 0.0)
        alpha = h.sum() + (1.0 if bias else 0.0)
        truth = functional_call(defense.task.model, state.params, (x,))
        assert torch.allclose(predicted, truth + gamma * alpha * r_a)  # Eq. 11
        error = (predicted - torch.nn.functional.one_hot(y, 3)).detach()
        for n, p in params.items():
            by_loss = torch.autograd.grad(
                0.5 * ((predicted - torch.nn.functional.one_hot(y, 3)) ** 2).sum(), p, retain_graph=True
            )
            outputs = torch.autograd.grad(predicted @ r_a, p, retain_graph=True)[0]
            by_alpha = torch.autograd.grad(alpha, p, retain_graph=True, materialize_grads=True)[0]
            b = len(batch.y[0])
            total[UPLOADS[0]][n] += by_loss[0] / b
            total[UPLOADS[1]][n] += (alpha.detach() * outputs + (error @ r_a) * by_alpha) / b
            total[UPLOADS[2]][n] += alpha.detach() * by_alpha / b
    up, _ = defense.client(sent.down, batch, {}, {})
    assert list(up) == [kind + n for kind in UPLOADS for n in params]
    for kind in UPLOADS:
        for n in params:
            assert torch.allclose(up[kind + n], total[kind][n], atol=1e-12), kind + n


@settings(max_examples=40, deadline=None)
@given(networks(), st.lists(st.integers(1, 5), min_size=1, max_size=4), st.integers(0, 99))
def test_all_clients_at_once(network, sizes, seed):
    model, shape = network
    defense = make(model, shape, classes=2)
    state = State({n: p.detach().clone() for n, p in model.named_parameters()})
    sent = defense.broadcast(state, Rng(seed))
    whole = [drawn(defense, seed + c) for c in range(len(sizes))]
    batches = [type(b)(b.x[:, :n], b.y[:, :n]) for b, n in zip(whole, sizes, strict=True)]
    got, memories = defense.clients(sent.down, batches, [{}] * len(sizes), [{}] * len(sizes))
    alone = stack([defense.client(sent.down, b, {}, {})[0] for b in batches])
    assert memories == [{}] * len(sizes)
    for n, t in alone.items():
        assert torch.allclose(got[n], t, rtol=1e-9, atol=1e-9 * float(t.abs().max())), n


@pytest.mark.parametrize("bias", [True, False])
def test_dense_chains_at_once(bias):
    defense = make(mlp(bias))
    sent = defense.broadcast(start(defense), Rng(0))
    for sizes in ((4, 4, 4), (1, 4, 2)):
        batches = [type(b)(b.x[:, :n], b.y[:, :n]) for n in sizes for b in [drawn(defense, n)]]
        got, _ = defense.clients(sent.down, batches, [{}] * 3, [{}] * 3)
        alone = stack([defense.client(sent.down, b, {}, {})[0] for b in batches])
        assert all(torch.allclose(got[n], t, rtol=1e-10, atol=1e-12) for n, t in alone.items())


class Viewed(nn.Module):
    """A network whose code asks for the usual layout of tensors: `view` refuses others."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Conv2d(2, 3, 3), nn.Linear(48, 3)

    def forward(self, x):
        return self.last(self.first(x).relu().view(x.size(0), -1))


def test_networks_that_view_their_activations():
    defense = make(Viewed(), (2, 6, 6))
    sent, batches = defense.broadcast(start(defense), Rng(0)), [drawn(defense, c) for c in range(3)]
    got, _ = defense.clients(sent.down, batches, [{}] * 3, [{}] * 3)
    alone = stack([defense.client(sent.down, b, {}, {})[0] for b in batches])
    assert all(torch.allclose(got[n], t, rtol=1e-10, atol=1e-12) for n, t in alone.items())


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_training_is_that_of_fedavg(optimizer):
    times = {"server_optimizer": optimizer, "lr": 0.01}
    defense, plain = (make(sizes=(20, 20, 20), name=name, schedule=times) for name in ("pbpfl", "fedavg"))
    state, cohort = start(defense), Cohort((0, 1, 2), weights((20,) * 3, (0, 1, 2)))
    written, after = play(defense, 4)
    for r in written:
        ups = stack([plain.client(state.params, b, {}, {})[0] for b in r.batches])
        state = plain.aggregate(state, plain.broadcast(state, Rng(0)), ups, cohort, Rng(0))
    assert relative(after.params, state.params) <= {"sgd": 1e-9, "adam": 1e-6}[optimizer]  # Adam divides by small ones


def test_unequal_clients_are_weighted():
    defense = make()
    (r,), after = play(defense, 1)
    step = mean_gradient(defense, r.params, r.batches)
    assert relative({n: (r.params[n] - after.params[n]) / 0.1 for n in step}, step) <= 1e-7  # N_c/N are float32
    assert defense.task.sizes == SIZES


def test_masks_are_fresh_each_round_and_positive():
    defense = make()
    written, _ = play(defense, 3)
    for name in (f"{MASK}0", f"{MASK}1", GAMMA):
        drawn_ = [r.secret[name] for r in written]
        assert not torch.equal(drawn_[0], drawn_[1])
        assert not torch.equal(drawn_[1], drawn_[2])
    masks = torch.cat([r.secret[f"{MASK}0"] for r in written])
    assert 0.1 <= float(masks.min()) < 0.7 < 1.3 < float(masks.max()) <= 10
    assert not set(written[0].secret) & set(written[0].down)


def test_the_laws():
    def masks(**options):
        defense = make(nn.Sequential(nn.Linear(12, 4000), nn.ReLU(), nn.Linear(4000, 3)), **options)
        sent = defense.broadcast(start(defense), Rng(0))
        return sent.secret[f"{MASK}0"], sent.secret[GAMMA], sent.down[R_A]

    r, gamma, r_a = masks(decades=4)
    logs = r.log10()
    assert -2 <= float(logs.min()) < -1.98
    assert 1.98 < float(logs.max()) <= 2
    assert abs(float(logs.mean())) < 0.06
    assert 0 <= float(gamma) <= 1
    assert (r_a >= 0).all()
    assert set(masks(r="constant")[0].tolist()) == {1 + 1e-5}
    uniform = masks(r="uniform")[0]
    assert float(uniform.min()) >= 1e-5
    assert abs(float(uniform.mean()) - 0.5) < 0.02
    assert float(masks(gamma_scale=50)[1]) == pytest.approx(50 * float(gamma))
    assert not torch.equal(masks(gamma="normal")[1], gamma)
    assert not torch.equal(masks(r_a="normal")[2], r_a)
    _, gamma, r_a = masks(gamma="cancelling")
    v = float(r_a.square().sum())
    assert v <= 0.25
    assert abs(1 - float(gamma) + float(gamma) ** 2 * v) < 1e-12


@pytest.mark.parametrize(("model", "shape"), [(mlp, (12,)), (cnn, (1, 8, 8))])
def test_the_release_predicts_as_the_server_does(model, shape):
    defense = make(model(), shape)
    state, x = start(defense), torch.rand(5, *shape, dtype=torch.float64)
    released = defense.release(state, Rng(7))
    assert torch.allclose(defense.task.outputs(released, x), defense.task.outputs(state.params, x))
    assert all(not torch.allclose(released[n], p) for n, p in state.params.items() if not n.endswith(".bias"))


def test_the_wire_is_once_down_and_three_times_up():
    defense = make()
    (r,), _ = play(defense, 1, dtype=torch.float32)
    n = 4 * sum(p.numel() for p in defense.task.model.parameters())
    assert sum(t.numel() * t.element_size() for t in r.down.values()) == n + 4 * 3
    assert defense.sent_bytes(r.ups) == 3 * 3 * n
    assert not torch.equal(r.ups["beta.0.weight"], torch.zeros_like(r.ups["beta.0.weight"]))
    assert torch.equal(r.ups["beta.4.weight"], torch.zeros_like(r.ups["beta.4.weight"]))


def test_a_rule_is_given_gradients():
    krum, plain = make(name="pbpfl+krum"), make(name="fedavg+krum")
    (r,), after = play(krum, 1)
    ups = stack([plain.client(r.params, b, {}, {})[0] for b in r.batches])
    cohort = Cohort((0, 1, 2), weights(SIZES, (0, 1, 2)))
    expected = plain.aggregate(State(r.params), plain.broadcast(State(r.params), Rng(0)), ups, cohort, Rng(0))
    assert relative(after.params, expected.params) <= 1e-9


def test_a_rule_that_holds_samples_compares_gradients():
    defense, plain = make(name="pbpfl+fltrust"), make(name="fedavg+fltrust")
    state = replace(start(defense), auxiliary=drawn(defense, 77))
    sent = defense.broadcast(state, Rng(0))
    expected = plain._reference(state, plain.broadcast(state, Rng(0)))
    assert torch.allclose(defense._reference(state, sent), expected, rtol=1e-9, atol=1e-12)


def test_what_cannot_be_trained():
    with pytest.raises(UserError, match="option 'loss' is cross-entropy, allowed: mse, regression"):
        make(schedule={"loss": "cross-entropy"})
    with pytest.raises(UserError, match="option 'local-epochs' is 2, allowed: 0"):
        make(schedule={"local_epochs": 2})
    with pytest.raises(UserError, match=r"^defense pbpfl: option 'model': layer '1' \(Sigmoid\) does not keep"):
        make(nn.Sequential(nn.Linear(12, 4), nn.Sigmoid(), nn.Linear(4, 3)))


def test_regression_of_classes_has_one_output():
    defense = make(nn.Sequential(nn.Linear(12, 4), nn.ReLU(), nn.Linear(4, 1)), schedule={"loss": "regression"})
    assert defense.task.criterion == Criterion("regression", 3)
    assert relative(*recovered(defense, start(defense), drawn(defense, 1))) <= 1e-9
