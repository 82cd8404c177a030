"""Rows of layers: each sample's gradient from one pass for all, against a pass of its own."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from fedarena.problem.client_steps.chain import chain_of
from fedarena.problem.client_steps.layered import Weighted, layers_of, passes
from fedarena.problem.loss import Criterion

KERNELS = st.fixed_dictionaries(
    {
        "out_channels": st.integers(1, 4),
        "kernel_size": st.integers(2, 4),
        "stride": st.integers(1, 2),
        "padding": st.integers(1, 3),
        "dilation": st.integers(1, 2),
        "bias": st.booleans(),
    }
)
BETWEEN = {
    "relu": nn.ReLU,
    "elu": nn.ELU,
    "sigmoid": nn.Sigmoid,
    "norm": lambda: nn.GroupNorm(1, 1, affine=False),
    "mean": lambda: nn.AvgPool2d(2, padding=1),
    "largest": lambda: nn.MaxPool2d(2, padding=1),
}


def network(kernels: list[dict[str, Any]], between: list[str], widths: list[int], pooled: int) -> nn.Sequential:
    """On images of two channels, for three classes."""
    made: list[nn.Module] = []
    channels = 2
    for kernel, name in zip(kernels, between, strict=False):
        made += [nn.Conv2d(channels, **kernel), nn.GroupNorm(1, kernel["out_channels"], affine=False)]
        channels = kernel["out_channels"]
        made += [BETWEEN[name]()] if name != "norm" else []
    made += [nn.AdaptiveAvgPool2d(pooled), nn.Flatten()]
    size = channels * pooled**2
    for width in widths:
        made += [nn.Linear(size, width, bias=width % 2 == 0), nn.Tanh()]
        size = width
    return nn.Sequential(*made, nn.Linear(size, 3)).double()


def own(model: nn.Module, criterion: Criterion, x: Tensor, y: Tensor) -> dict[str, Tensor]:
    """Gradients [n, ...] by the definition, one sample at a time."""
    each = []
    for i in range(len(x)):
        model.zero_grad()
        criterion.mean(model(x[i : i + 1]), y[i : i + 1]).backward()
        each.append({name: p.grad for name, p in model.named_parameters() if p.grad is not None})
    return {name: torch.stack([g[name] for g in each]) for name in each[0]}


@settings(max_examples=60, deadline=None)
@given(
    kernels=st.lists(KERNELS, min_size=1, max_size=2),
    between=st.lists(st.sampled_from(sorted(BETWEEN)), min_size=2, max_size=2),
    widths=st.lists(st.integers(1, 5), max_size=2),
    pooled=st.integers(1, 3),
    loss=st.sampled_from(["cross-entropy", "mse"]),
    n=st.integers(1, 4),
    seed=st.integers(0, 1000),
)
def test_every_sample_s_gradient(
    kernels: list[dict[str, Any]], between: list[str], widths: list[int], pooled: int, loss: str, n: int, seed: int
) -> None:
    torch.manual_seed(seed)
    model, criterion = network(kernels, between, widths, pooled), Criterion(loss, 3)
    x, y = torch.rand(n, 2, 31, 33, dtype=torch.float64), torch.randint(0, 3, (n,))
    layers, params = layers_of(model), dict(model.named_parameters())
    assert layers is not None
    found: dict[str, Tensor] = {}
    for layer, h, q in passes(criterion, layers, params, x, y):
        if layer.convolution is None:
            found[layer.weight] = torch.einsum("no,ni->noi", q, h)
            found |= {layer.bias: q} if layer.bias else {}
        else:
            found |= layer.gradients(params, h, q)
    truth = own(model, criterion, x, y)
    assert set(found) == set(truth)
    for name, t in truth.items():
        torch.testing.assert_close(found[name].reshape(t.shape), t, rtol=1e-9, atol=1e-12)


shared = nn.Conv2d(1, 1, 1)
OTHERS = {
    "its own forward": type("Own", (nn.Sequential,), {"forward": lambda self, x: x})(nn.Flatten(), nn.Linear(4, 2)),
    "samples that depend on each other": nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2), nn.Conv2d(2, 1, 1)),
    "chance": nn.Sequential(nn.Flatten(), nn.Linear(4, 4), nn.Dropout(), nn.Linear(4, 2)),
    "inputs that are overwritten": nn.Sequential(nn.Conv2d(1, 2, 1), nn.ReLU(inplace=True), nn.Conv2d(2, 1, 1)),
    "a layer twice": nn.Sequential(shared, shared),
    "groups": nn.Sequential(nn.Conv2d(2, 2, 1, groups=2)),
    "borders that repeat": nn.Sequential(nn.Conv2d(1, 2, 3, padding=1, padding_mode="circular")),
    "padding by name": nn.Sequential(nn.Conv2d(1, 2, 3, padding="same")),
    "norms with parameters": nn.Sequential(nn.Conv2d(1, 2, 1), nn.GroupNorm(1, 2), nn.Conv2d(2, 1, 1)),
    "no layer at the end": nn.Sequential(nn.Flatten(), nn.Linear(4, 2), nn.Tanh()),
    "dense layers on images": nn.Sequential(nn.Linear(2, 2)),
    "nothing": nn.Sequential(),
}


def hooked() -> nn.Sequential:
    made = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
    made[1].register_forward_hook(lambda module, x, z: 2 * z)
    return made


def patched() -> nn.Sequential:
    made = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
    made[1].forward = lambda x: x[:, :2]  # type: ignore[method-assign]
    return made


OTHERS |= {"a hook": hooked(), "a forward of one's own": patched()}


@pytest.mark.parametrize("case", OTHERS)
def test_any_other_model_is_none(case: str) -> None:
    assert layers_of(OTHERS[case]) is None
    if case in ("a hook", "a forward of one's own"):
        assert chain_of(OTHERS[case], 3) is None


def test_layers_in_order() -> None:
    model = nn.Sequential(
        nn.Sequential(nn.Conv2d(1, 2, 3, stride=2, bias=False), nn.ReLU()), nn.Flatten(), nn.Linear(8, 3)
    )
    layers = layers_of(model)
    assert layers is not None
    weighted = [layer for layer in layers if isinstance(layer, Weighted)]
    kernel = {"stride": (2, 2), "padding": (0, 0), "dilation": (1, 1)}
    assert weighted == [Weighted("0.0.weight", None, kernel), Weighted("2.weight", "2.bias", None)]
