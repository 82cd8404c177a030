"""What is read off a graph with two samples and with three holds for batches of any size."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from helpers.scaling import MEAN, apart, drawn, net, networks, outputs, parameters, times
from hypothesis import HealthCheck, given, settings
from torch import nn

from fedarena.core.errors import UserError
from fedarena.core.registry import find
from fedarena.models.scaling import graph as scaling_graph
from fedarena.models.scaling.positive_scaling import plan

SIZES = (1, 2, 3, 8)


def assert_plan_holds_for_every_batch(model: nn.Module, shape: tuple[int, ...]) -> None:
    """The masked network is the plain one whatever the batch, and the plan the one that other sizes give."""
    found, params = plan(model, shape), parameters(model)
    masked = times(found.factors(drawn(found.sizes)), params)
    for n in SIZES:
        plain, hat = (outputs(model, p, shape, n) for p in (params, masked))
        assert apart({"out": hat}, {"out": plain}) < 1e-9
    with pytest.MonkeyPatch.context() as patch:
        for n in SIZES:
            patch.setattr(scaling_graph, "BATCHES", (n,))
            assert plan(model, shape) == found


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(networks())
def test_any_network(made: tuple[nn.Module, tuple[int, ...]]) -> None:
    assert_plan_holds_for_every_batch(*made)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("mlp", {"widths": "20,10"}),
        ("cnn-mnist", {}),
        ("lenet-baffle", {"activation": "relu", "norm": "none"}),
        ("resnet", {"skip": "add", "depth": "20"}),
        ("resnet", {"skip": "concat", "depth": "20"}),
    ],
)
def test_shipped_models(name: str, options: dict[str, str]) -> None:
    card, shape = find("model", name), (1, 28, 28)
    architecture = card.load()(card.parse(options))
    model = architecture.module(shape, 10)
    params = architecture.init(model, torch.Generator().manual_seed(0))
    with torch.no_grad():
        for key, p in model.named_parameters():
            p.copy_(params[key])
    assert_plan_holds_for_every_batch(model.double(), shape)


def test_input_statistics_and_the_number_of_samples_may_be_factors() -> None:
    """Both depend on the batch, and neither on a hidden unit's factor."""

    def forward(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
        h = F.relu(m.a(m.norm(x))).mean(MEAN)
        return m.out(F.relu(m.fc(h * h.shape[0])).view(h.size(0), -1))

    model = net(forward, "b")
    model.norm = nn.BatchNorm2d(2, affine=False, track_running_stats=False)
    assert_plan_holds_for_every_batch(model, (2, 4, 4))


def joined_where_the_batch_says(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Side by side in channels for two samples, in rows for three, in columns for four."""
    a = m.a(x)
    b = m.b(x) + a  # of one factor with a, so that they may stand side by side anywhere
    joined = torch.cat([a, b], a.shape[0] - 1)
    return m.out(m.fc(F.relu(joined).reshape(joined.shape[0], -1).view(-1, 96)))


@pytest.mark.parametrize(
    ("forward", "message"),
    [
        (lambda m, x: m.out(m.fc(F.relu(m.a(x)).mean(MEAN).reshape(2, -1))), r"'reshape' does not work with 3 samples"),
        (lambda m, x: m.out(m.fc(F.relu(m.a(x)).mean(MEAN).view(5, -1))), r"'view' does not work with 2 samples"),
        (lambda m, x: m.out(m.fc(m.a(x).mean(MEAN) + m.a(x).mean((1, 2, 3)))), "used twice"),
        (lambda m, x: m.out(m.fc(m.a(x).mean(MEAN) + torch.ones(7, 3))), r"'add' does not work with 2 samples"),
    ],
)
def test_numbers_of_samples_that_are_written_down_are_named(forward: object, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        plan(net(forward, "b"), (2, 4, 4))
    assert "\n" not in str(caught.value)


def test_a_graph_that_scales_other_units_for_other_batches_is_refused() -> None:
    model = net(joined_where_the_batch_says)
    model.fc = nn.Linear(96, 3).double()
    with pytest.raises(UserError, match=r"scales other units for 3 samples than for 2, allowed: operations that do"):
        plan(model, (2, 4, 4))


@pytest.mark.parametrize("samples", SIZES[1:])
@pytest.mark.parametrize(
    "head",
    [
        lambda h: h.flatten(0).view(-1, 3),
        lambda h: h.mean(0, keepdim=True),
        lambda h: torch.cat([h, h]),
        lambda h: h - h.mean(),
        lambda h: F.batch_norm(h, None, None, training=True),
        lambda h: h[:1],
        lambda h: h.softmax(0),
    ],
)
def test_whatever_mixes_samples_is_refused_by_every_size_but_one(
    head: object, samples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scaling_graph, "BATCHES", (samples,))
    with pytest.raises(UserError, match=r"batch|does not keep the masks"):
        plan(net(lambda m, x: m.out(m.fc(head(F.relu(m.a(x)).mean(MEAN)))), "b"), (2, 4, 4))
