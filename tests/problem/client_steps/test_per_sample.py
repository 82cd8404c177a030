"""Sums of bounded per-sample gradients against one sample at a time, and against Opacus."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.func import grad, vmap

from fedarena.core.registry import find
from fedarena.core.rng import Rng
from fedarena.core.tensors import flatten
from fedarena.problem.client_steps import per_sample
from fedarena.problem.client_steps.chain import chain_of
from fedarena.problem.client_steps.layered import layers_of
from fedarena.problem.client_steps.per_sample import Bound, many_clients, one_client
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Batch, Task

LAYERED = [("cnn-two-stage", {}), ("lenet-dlg", {}), ("cnn-two-stage", {"mean": "0.3", "blur": "0.5"})]
KINDS = [(0.0, Bound(1.0, True)), (0.1, Bound(0.5, False))]
BOUNDS = [Bound(1.0, True), Bound(0.3, True), Bound(0.5, False), Bound(1e9, False)]


def clients(sizes, model="mlp", shape=(1, 6, 6), seed=0, dtype=torch.float64, **options):
    """Task, parameters, one batch a client, and a momentum vector each."""
    card = find("model", model)
    architecture = card.load()(card.parse(options))
    module = architecture.module(shape, 5)
    g = Rng(seed).torch()
    params = {n: p.to(dtype) for n, p in architecture.init(module, g).items()}
    params = {n: p + 0.1 * torch.randn(p.shape, generator=g, dtype=dtype) for n, p in params.items()}
    task = Task(
        module, input_shape=shape, n_classes=5, sizes=tuple(max(1, n) for n in sizes), schedule=Schedule(batch_size=1)
    )
    batches = [
        Batch(torch.rand(1, n, *shape, generator=g, dtype=dtype), torch.randint(0, 5, (1, n), generator=g))
        for n in sizes
    ]
    momenta = torch.randn(len(sizes), flatten(params).numel(), generator=g, dtype=dtype)
    return task, params, batches, momenta


def slow(task, params, batches, momenta, beta, bound):
    """One sample at a time, by the definition."""
    out = torch.zeros_like(momenta)
    for c, batch in enumerate(batches):
        for x, y in zip(*batch.images(), strict=True):
            phi = (1 - beta) * flatten(grad(task.loss)(params, x[None], y[None])) + beta * momenta[c]
            size = phi.norm()
            out[c] += phi * (bound.length / size if bound.normalise or size > bound.length else 1.0)
    return out


def error(got, truth):
    assert got.shape == truth.shape
    return float(((got - truth).norm(dim=1) / truth.norm(dim=1).clamp_min(1e-12)).max())


@settings(max_examples=60, deadline=None)
@given(
    widths=st.lists(st.integers(1, 9), max_size=3),
    activation=st.sampled_from(["relu", "sigmoid", "tanh", "elu"]),
    sizes=st.lists(st.integers(0, 7), min_size=1, max_size=6),
    beta=st.sampled_from([0.0, 0.1, 0.9]),
    bound=st.sampled_from(BOUNDS),
    moving=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_chains_equal_one_sample_at_a_time(widths, activation, sizes, beta, bound, moving, seed):
    task, params, batches, m = clients(sizes, widths=",".join(map(str, widths)), activation=activation, seed=seed)
    assert chain_of(task.model, 3) is not None
    m = m if moving else torch.zeros_like(m)
    truth = slow(task, params, batches, m, beta, bound)
    assert error(many_clients(task, params, batches, m if moving else None, beta, bound), truth) < 1e-9
    alone = [
        one_client(task, params, b, own if moving else None, beta, bound) for b, own in zip(batches, m, strict=True)
    ]
    assert error(torch.stack(alone), truth) < 1e-9


@pytest.mark.parametrize(
    ("model", "options"), [*LAYERED, ("wrn-10-2", {"norm": "group"}), ("vit", {"width": "8", "layers": "1"})]
)
@pytest.mark.parametrize("beta", [0.0, 0.1])
@pytest.mark.parametrize("bound", BOUNDS[1:3])
def test_other_models_equal_one_sample_at_a_time(model, options, beta, bound, monkeypatch):
    monkeypatch.setattr(per_sample, "CHUNK", 5)  # samples of a client in two chunks, and a chunk with several clients
    task, params, batches, m = clients((3, 0, 9, 1, 2), model, (1, 16, 16), **options)
    assert chain_of(task.model, 3) is None
    assert (layers_of(task.model) is not None) == ((model, options) in LAYERED)
    truth = slow(task, params, batches, m, beta, bound)
    assert error(many_clients(task, params, batches, m, beta, bound), truth) < 1e-9
    alone = torch.stack([one_client(task, params, b, o, beta, bound) for b, o in zip(batches, m, strict=True)])
    assert error(alone, truth) < 1e-9


@pytest.mark.parametrize("model", ["mlp-two-stage", "cnn-two-stage"])
@pytest.mark.parametrize("bound", BOUNDS[:1] + BOUNDS[2:3])
def test_single_precision_agrees_to_1e5(model, bound):
    options = {"mean": "0.3", "std": "0.4", "size": "18"}
    task, params, batches, m = clients((16, 9, 0, 21), model, (1, 12, 12), dtype=torch.float32, **options)
    got = many_clients(task, params, batches, m, 0.1, bound)
    assert error(got, slow(task, params, batches, m, 0.1, bound)) < 1e-5


@pytest.mark.parametrize("loss", ["mse", "regression"])
@pytest.mark.parametrize(("model", "options"), [("mlp", {"widths": "4"}), LAYERED[0], ("wrn-10-2", {"norm": "group"})])
def test_other_losses(loss, model, options):
    task, params, batches, m = clients((3, 0, 2), model, (1, 16, 16), **options)
    if loss == "regression":  # of one number
        last = list(params)[-2:]
        params = {name: p[:1] if name in last else p for name, p in params.items()}
        m = m[:, : flatten(params).numel()]
    task = replace(task, schedule=replace(task.schedule, loss=loss))
    truth = slow(task, params, batches, m, 0.1, BOUNDS[0])
    assert error(many_clients(task, params, batches, m, 0.1, BOUNDS[0]), truth) < 1e-9
    alone = torch.stack([one_client(task, params, b, o, 0.1, BOUNDS[0]) for b, o in zip(batches, m, strict=True)])
    assert error(alone, truth) < 1e-9


def test_probabilities_in_place_of_classes():
    task, params, batches, m = clients((3, 2), widths="4")
    soft = [Batch(b.x, nn.functional.one_hot(b.y, 5).double() * 0.7 + 0.06) for b in batches]
    truth = slow(task, params, soft, m, 0.1, BOUNDS[0])
    assert error(many_clients(task, params, soft, m, 0.1, BOUNDS[0]), truth) < 1e-9


def test_a_model_with_a_layer_outside_of_the_task_s_parameters_is_general():
    """What a chain's fast form cannot see must not change what is computed: parameters of another name."""
    task, params, batches, m = clients((3, 2), widths="4")
    extra = {**params, "more": torch.ones(3, dtype=torch.float64)}
    wide = torch.cat([m, m[:, :3]], 1)

    class Ignoring:
        model, input_shape = task.model, task.input_shape

        @staticmethod
        def loss(p, x, y):
            return task.loss({n: t for n, t in p.items() if n != "more"}, x, y) + p["more"].square().sum()

    truth = slow(Ignoring, extra, batches, wide, 0.1, BOUNDS[0])
    assert error(many_clients(Ignoring, extra, batches, wide, 0.1, BOUNDS[0]), truth) < 1e-9


@pytest.mark.parametrize("model", ["mlp", "cnn-two-stage"])
def test_no_samples_at_all(model):
    task, params, batches, m = clients((0, 0), model, (1, 16, 16))
    assert not many_clients(task, params, batches, m, 0.1, BOUNDS[0]).any()
    assert not one_client(task, params, batches[0], m[0], 0.1, BOUNDS[0]).any()


@pytest.mark.parametrize("normalise", [True, False])
def test_each_sample_moves_the_sum_by_at_most_the_bound(normalise):
    task, params, batches, m = clients((6,), widths="4")
    whole = one_client(task, params, batches[0], m[0], 0.1, Bound(0.2, normalise))
    for j in range(6):
        keep = [i for i in range(6) if i != j]
        less = one_client(
            task, params, Batch(batches[0].x[:, keep], batches[0].y[:, keep]), m[0], 0.1, Bound(0.2, normalise)
        )
        assert (whole - less).norm() <= 0.2 * (1 + 1e-9)
        if normalise:
            assert (whole - less).norm() == pytest.approx(0.2)


@pytest.mark.parametrize("widths", ["", "7", "33,12"])
@pytest.mark.parametrize("activation", ["relu", "sigmoid", "tanh", "elu"])
@pytest.mark.parametrize("loss", ["cross-entropy", "mse"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_single_sample_gives_the_bits_that_vmap_gives(widths, activation, loss, dtype, monkeypatch):
    sizes = [1] * 8
    task, params, batches, m = clients(sizes, shape=(1, 8, 8), dtype=dtype, widths=widths, activation=activation)
    task = replace(task, schedule=replace(task.schedule, loss=loss))
    batches[0] = batches[0].with_targets(5)
    given = [(task, params, b, own, beta, bound) for b, own in zip(batches, m, strict=True) for beta, bound in KINDS]
    alone = [one_client(*one) for one in given]
    monkeypatch.setattr(per_sample, "untransformed", lambda: False)
    assert all(torch.equal(one_client(*one), sum_) for one, sum_ in zip(given, alone, strict=True))


def test_one_client_differentiates_in_its_samples_under_vmap():
    task, params, batches, m = clients((3,), widths="4")
    target = torch.randn(m.shape[1], generator=Rng(1).torch(), dtype=torch.float64)

    def value(x):
        return one_client(task, params, Batch(x, batches[0].y), m[0], 0.1, BOUNDS[0]) @ target

    many = torch.stack([batches[0].x, batches[0].x + 0.1])
    slopes = vmap(grad(value))(many)
    step = torch.zeros_like(many[0])
    step.view(-1)[7] = 1e-6
    for x, slope in zip(many, slopes, strict=True):
        numeric = (value(x + step) - value(x - step)) / 2e-6
        assert slope.view(-1)[7] == pytest.approx(float(numeric), rel=1e-5)


@pytest.mark.parametrize("model", ["mlp-two-stage", "cnn-two-stage"])
@pytest.mark.parametrize("bound", [Bound(1.0, True), Bound(0.5, False)])
def test_sums_agree_with_opacus(model, bound):
    grad_sample = pytest.importorskip("opacus.grad_sample")
    task, params, batches, m = clients((5, 0, 8), model, (1, 16, 16), dtype=torch.float32)
    module = copy.deepcopy(task.model)
    module.load_state_dict(params)
    module = grad_sample.GradSampleModule(module, loss_reduction="sum")
    truth = torch.zeros_like(m)
    for c, batch in enumerate(batches):
        x, y = batch.images()
        if not len(x):
            continue
        module.zero_grad()
        nn.functional.cross_entropy(module(x), y, reduction="sum").backward()
        each = torch.cat([p.grad_sample.flatten(1) for p in module.parameters()], 1)
        sizes = each.norm(dim=1)
        truth[c] = (bound.length / sizes if bound.normalise else (bound.length / sizes).clamp(max=1)) @ each
    assert error(many_clients(task, params, batches, None, 0.0, bound), truth) < 1e-5
