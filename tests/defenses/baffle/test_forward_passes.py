"""Loss differences of many clients against a plain loop: one client, one direction, `functional_call`."""

from __future__ import annotations

from itertools import islice

import pytest
import torch
from helpers.forward_passes import (
    DTYPES,
    assert_differences_agree,
    convolutional,
    draws,
    federation,
    one_by_one,
    shipped,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from fedarena.core.errors import UserError
from fedarena.defenses.baffle.forward_passes import Differencing, differences, separate
from fedarena.models.preprocess import Preprocess
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Batch, Task

ACTIVATIONS = [nn.ReLU, nn.Hardswish, nn.SELU, nn.Sigmoid]
SCHEMES = st.sampled_from(["forward", "central"])


@given(
    scheme=SCHEMES,
    dtype=st.sampled_from(list(DTYPES)),
    channels=st.integers(1, 3),
    width=st.integers(1, 3),
    activation=st.sampled_from(ACTIVATIONS),
    kernel=st.sampled_from([1, 3, 5]),
    padding=st.integers(0, 2),
    pools=st.booleans(),
    side=st.integers(9, 13),
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    rows=st.none() | st.integers(1, 6),
)
@settings(max_examples=60, deadline=None)
def test_convolutional_networks(scheme, dtype, channels, width, activation, kernel, padding, pools, side, sizes, rows):
    model = convolutional(channels, width, activation, kernel, padding, pools, side)
    assert_differences_agree(*federation(model, (channels, side, side), sizes, dtype=dtype), scheme, dtype, rows=rows)


@given(
    scheme=SCHEMES,
    dtype=st.sampled_from(list(DTYPES)),
    widths=st.lists(st.integers(1, 8), min_size=1, max_size=3),
    activation=st.sampled_from([*ACTIVATIONS, nn.Tanh]),
    bias=st.booleans(),
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    rows=st.none() | st.integers(1, 6),
    k=st.integers(1, 7),
)
@settings(max_examples=60, deadline=None)
def test_dense_networks(scheme, dtype, widths, activation, bias, sizes, rows, k):
    layers, d = [nn.Flatten()], 12
    for width in widths:
        layers += [nn.Linear(d, width, bias=bias), activation()]
        d = width
    model = nn.Sequential(*layers, nn.Linear(d, 4, bias=bias))
    assert_differences_agree(*federation(model, (3, 4), sizes, dtype=dtype), scheme, dtype, k=k, rows=rows)


@pytest.mark.parametrize("scheme", ["forward", "central"])
@pytest.mark.parametrize(
    ("name", "shape", "options"),
    [
        ("lenet-baffle", (1, 8, 8), {"size": "12"}),
        ("lenet-baffle", (3, 8, 8), {"norm": "group"}),
        ("lenet-baffle", (1, 8, 8), {"norm": "batch", "activation": "selu"}),
        ("wrn-10-2", (3, 8, 8), {"norm": "group"}),
        ("wrn-10-2", (3, 8, 8), {"norm": "batch"}),
        ("cnn-two-stage", (1, 28, 28), {}),
        ("mlp-two-stage", (1, 8, 8), {"mean": "0.3"}),
    ],
)
def test_models_of_the_registry(name, shape, options, scheme):
    assert_differences_agree(*federation(shipped(name, shape, **options), shape, [4, 4, 2]), scheme, torch.float64)


def test_labels_may_be_probabilities():
    model = nn.Sequential(nn.Flatten(), nn.Linear(9, 4))
    task, params, batches = federation(model, (3, 3), [3, 2])
    soft = [Batch(b.x, torch.rand(1, len(b.y[0]), 4, dtype=torch.float32).softmax(-1)) for b in batches]
    assert_differences_agree(task, params, soft, "forward", torch.float64)


def test_one_parameter_that_serves_two_layers():
    shared = nn.Linear(5, 5)
    model = nn.Sequential(nn.Linear(5, 5), shared, nn.Tanh(), shared, nn.Linear(5, 4))
    assert_differences_agree(*federation(model, (5,), [3]), "central", torch.float64)


def test_half_precision_is_computed_in_half_precision():
    """W + σz, activations and loss: at σ = 1e-5 the loss hardly moves any more; at σ = 0.1 it does."""
    model = convolutional(1, 2, nn.ReLU, 3, 1, True, 8)
    task, params, batches = federation(model, (1, 8, 8), [4], dtype=torch.float32)
    n = sum(p.numel() for p in params.values())
    small, large = (
        differences(task, params, batches, draws(n), 20, Differencing(sigma, "forward", torch.float16))
        for sigma in (1e-5, 0.1)
    )
    full = differences(task, params, batches, draws(n), 20, Differencing(0.1, "forward", torch.float32))
    assert small.dtype == torch.float16
    assert (small == 0).sum() >= 15
    assert (large != 0).sum() >= 15
    assert (large.float() - full).abs().max() < 0.02
    assert not torch.equal(large.float(), full)


def test_differences_are_directional_derivatives():
    """ΔL/σ → zᵀ∇L, central twice that."""
    task, params, batches = federation(convolutional(1, 2, nn.Hardswish, 3, 1, True, 8), (1, 8, 8), [5])
    n = sum(p.numel() for p in params.values())
    leaves = {name: p.clone().requires_grad_() for name, p in params.items()}
    x, y = batches[0].images()
    gradient = torch.cat([g.flatten() for g in torch.autograd.grad(task.loss(leaves, x, y), list(leaves.values()))])
    slopes = torch.stack([z.double() @ gradient for z in islice(draws(n), 4)])
    for scheme, factor, tolerance in (("forward", 1, 1e-3), ("central", 2, 1e-6)):
        got = differences(task, params, batches, draws(n), 4, Differencing(1e-5, scheme, torch.float64))[0]
        assert torch.allclose(got / 1e-5, factor * slopes, rtol=0, atol=tolerance * slopes.abs().max())


def test_autograd_is_never_touched(monkeypatch):
    task, params, batches = federation(convolutional(1, 2, nn.ReLU, 3, 1, True, 8), (1, 8, 8), [2, 3])

    def fail(*args, **kwargs):
        raise AssertionError("autograd")

    for place in ("torch.autograd.grad", "torch.autograd.backward", "torch.Tensor.backward", "torch.enable_grad"):
        monkeypatch.setattr(place, fail)
    monkeypatch.setattr("torch.func.grad", fail)
    modes = []

    class Watched(nn.Linear):
        def forward(self, x):
            modes.append((torch.is_inference_mode_enabled(), torch.is_grad_enabled(), self.weight.requires_grad))
            return super().forward(x)

    task = Task(
        nn.Sequential(nn.Flatten(), Watched(64, 4)),
        input_shape=(1, 8, 8),
        n_classes=4,
        sizes=(2, 3),
        schedule=Schedule(),
    )
    params = {name: p.detach().double().requires_grad_() for name, p in task.model.named_parameters()}
    got = differences(task, params, batches, draws(260), 2, Differencing(1e-3, "forward", torch.float64))
    assert set(modes) == {(True, False, False)}
    assert not got.requires_grad


def test_the_result_can_be_differentiated_through_by_others():
    """An attack matches it: the target of its loss must be an ordinary tensor."""
    task, params, batches = federation(nn.Linear(3, 4), (3,), [2])
    got = differences(task, params, batches, draws(16), 2, Differencing(1e-3, "forward", torch.float64))
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    (x * got[0]).sum().backward()
    assert torch.equal(x.grad, got[0])


def test_the_model_and_the_parameters_stay_as_they_are():
    task, params, batches = federation(convolutional(1, 2, nn.ReLU, 3, 1, True, 8), (1, 8, 8), [2])
    before = {n: p.clone() for n, p in params.items()}
    state = {n: p.clone() for n, p in task.model.state_dict().items()}
    n = sum(p.numel() for p in params.values())
    directions = [torch.ones(n), torch.full((n,), 2.0)]
    given = [z.clone() for z in directions]
    differences(task, params, batches, iter(directions), 2, Differencing(1.0, "central", torch.float64))
    assert all(torch.equal(params[n], p) for n, p in before.items())
    assert all(torch.equal(t, state[n]) for n, t in task.model.state_dict().items())
    assert any(type(m) is nn.MaxPool2d for m in task.model.modules())
    assert all(torch.equal(a, b) for a, b in zip(directions, given, strict=True))


def test_exactly_k_directions_are_read():
    task, params, batches = federation(nn.Linear(3, 4), (3,), [2])
    directions = draws(16)
    differences(task, params, batches, directions, 3, Differencing(1e-3, "forward", torch.float64))
    assert torch.equal(next(directions), next(islice(draws(16), 3, None)))


def test_layers_before_the_first_parameter_run_once():
    calls = []

    class Counted(Preprocess):
        def forward(self, x):
            calls.append(len(x))
            return super().forward(x)

    Counted.__module__ = "fedarena.models.counted"
    model = nn.Sequential(Counted(0.5, 2.0, 6), nn.Flatten(), nn.Linear(36, 4))
    task, params, batches = federation(model, (1, 5, 5), [3, 3])
    got = differences(task, params, batches, draws(148), 5, Differencing(1e-3, "forward", torch.float64))
    assert calls == [6]
    with torch.no_grad():
        expected = one_by_one(task, params, batches, draws(148), 5, 1e-3, "forward", torch.float64)
    assert torch.allclose(got, expected, rtol=1e-9)


# -- samples that depend on each other ------------------------------------------------------------------


def test_which_models_take_each_sample_for_itself():
    class Elsewhere(nn.Module):
        def forward(self, x):
            return x - x.mean(0)

    assert separate(shipped("lenet-baffle", (1, 8, 8), norm="group"))
    assert separate(shipped("wrn-10-2", (3, 8, 8), norm="none"))
    assert not separate(shipped("lenet-baffle", (1, 8, 8), norm="batch"))
    assert not separate(nn.Sequential(Elsewhere(), nn.Linear(3, 4)))
    tracked = nn.BatchNorm2d(3)
    assert not separate(tracked)
    assert separate(tracked.eval())


def test_a_model_from_elsewhere_sees_one_client_at_a_time():
    class Centred(nn.Module):
        def forward(self, x):
            return x - x.mean(0)

    task, params, batches = federation(nn.Sequential(Centred(), nn.Linear(3, 4)), (3,), [3, 3])
    assert_differences_agree(task, params, batches, "forward", torch.float64)


def test_a_batch_that_cannot_be_cut_is_not_cut():
    task, params, batches = federation(shipped("lenet-baffle", (1, 8, 8), norm="batch"), (1, 8, 8), [4])
    assert_differences_agree(task, params, batches, "forward", torch.float64, rows=4)
    n = sum(p.numel() for p in params.values())
    with pytest.raises(UserError, match=r"option 'client-memory' asks for 3 samples .* whole batch of 4"):
        differences(task, params, batches, draws(n), 1, Differencing(1e-3, "forward", torch.float64), 3)
