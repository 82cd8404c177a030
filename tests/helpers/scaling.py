"""Networks for the tests of positive scalings: any mix of layers, pools, concatenations and additions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.func import functional_call

from fedarena.core.rng import Rng
from fedarena.models.scaling.positive_scaling import ScalingPlan, canonical, plan, scales

TOLERANCE = 1e-10
CONV = {1: nn.Conv1d, 2: nn.Conv2d}
MAX = {1: nn.MaxPool1d, 2: nn.MaxPool2d}
AVERAGE = {1: nn.AvgPool1d, 2: nn.AvgPool2d}
MEAN = (2, 3)
"""The axes of an image's pixels."""

ADAPTIVE = {1: nn.AdaptiveAvgPool1d, 2: nn.AdaptiveAvgPool2d}


class Steps(nn.Module):
    """Runs steps one after the other; each reads earlier values, of which number 0 is the input."""

    def __init__(self, steps: Sequence[tuple[Callable[..., Tensor], tuple[int, ...]]]) -> None:
        super().__init__()
        self.steps = tuple(steps)
        self.parts = nn.ModuleList(f for f, _ in steps if isinstance(f, nn.Module))

    def forward(self, x: Tensor) -> Tensor:
        values = [x]
        for f, sources in self.steps:
            values.append(f(*(values[k] for k in sources)))
        return values[-1]


@dataclass(frozen=True)
class Value:
    """What a step gives: its channels, pixels a side, and whether it holds (parts of) the network's input."""

    channels: int
    side: int
    holds_input: bool


def concatenate(a: Tensor, b: Tensor) -> Tensor:
    return torch.cat([a, b], dim=1)


def add(a: Tensor, b: Tensor) -> Tensor:
    return a + b


@st.composite
def networks(draw: Any) -> tuple[nn.Module, tuple[int, ...]]:
    """A random network of float64 with nonzero parameters, and the shape of one input."""
    axes = draw(st.sampled_from([0, 1, 2]))  # 0: dense layers only
    bias = draw(st.booleans())
    values = [Value(draw(st.integers(1, 3)), 1 if axes == 0 else draw(st.integers(4, 6)), True)]
    shape = (values[0].channels, *(values[0].side,) * axes)
    steps: list[tuple[Callable[..., Tensor], tuple[int, ...]]] = []

    def step(f: Callable[..., Tensor], sources: tuple[int, ...], value: Value) -> int:
        steps.append((f, sources))
        values.append(value)
        return len(values) - 1

    def layer(source: int, channels: int) -> int:
        v = values[source]
        made = (
            nn.Linear(v.channels, channels, bias)
            if axes == 0
            else CONV[axes](v.channels, channels, 3, padding=1, bias=bias)
        )
        return step(made, (source,), Value(channels, v.side, False))

    def activation(source: int) -> int:
        made = draw(st.sampled_from([nn.ReLU(), nn.LeakyReLU(0.2), torch.relu, nn.Identity(), nn.Dropout(0.0)]))
        return step(made, (source,), values[source])

    def pool(source: int) -> int:
        v = values[source]
        if axes == 0 or v.side < 2:
            return activation(source)
        made = draw(st.sampled_from([MAX[axes](2), AVERAGE[axes](2), MAX[axes](3, 1, 1)]))
        side = v.side if made.kernel_size == 3 else v.side // 2
        return step(made, (source,), Value(v.channels, side, v.holds_input))

    def partners(source: int) -> list[int]:
        return [k for k, v in enumerate(values) if v.side == values[source].side]

    at = activation(layer(0, draw(st.integers(1, 4))))
    for _ in range(draw(st.integers(0, 7))):
        kind = draw(st.sampled_from(["layer", "activation", "pool", "concatenation", "addition", "parallel"]))
        source = draw(st.sampled_from([at, *range(1, len(values))]))
        v = values[source]
        if kind == "layer":
            at = activation(layer(source, draw(st.integers(1, 4))))
        elif kind == "activation":
            at = activation(source)
        elif kind == "pool":
            at = pool(source)
        elif kind == "concatenation" and v.channels < 10:
            other = draw(st.sampled_from([k for k in partners(source) if values[k].channels < 10]))
            w = values[other]
            value = Value(v.channels + w.channels, v.side, v.holds_input or w.holds_input)
            at = step(concatenate, (source, other), value)
        elif kind == "addition" and not v.holds_input:
            same = [k for k in partners(source) if not values[k].holds_input and values[k].channels == v.channels]
            at = step(add, (source, draw(st.sampled_from(same))), v)
        elif kind == "parallel" and not v.holds_input:
            at = step(add, (source, layer(source, v.channels)), v)
    if axes:
        head: list[nn.Module] = [nn.Flatten()] if draw(st.booleans()) else [ADAPTIVE[axes](2), nn.Flatten()]
        for i, made in enumerate(head):
            side = 2 if i < len(head) - 1 else values[at].side
            at = step(made, (at,), Value(values[at].channels, side, values[at].holds_input))
    features = values[at].channels * values[at].side ** axes
    last = at
    if draw(st.booleans()):
        width = draw(st.integers(1, 4))
        step(nn.Linear(features, width, bias), (last,), Value(width, 1, False))
        last, features = activation(len(values) - 1), width
    step(nn.Linear(features, 2, bias), (last,), Value(2, 1, False))
    model = randomised(Steps(steps), draw(st.integers(0, 1000)))
    return model, shape


def randomised(model: nn.Module, seed: int = 0) -> nn.Module:
    """The same in float64, with standard normal parameters over the square root of what a unit reads."""
    generator = Rng(seed).child("parameters").torch()
    model = model.double()
    with torch.no_grad():
        for p in model.parameters():
            p.normal_(0, 1 / math.sqrt(max(1, p[0].numel())), generator=generator)
    return model


def parameters(model: nn.Module) -> dict[str, Tensor]:
    return {name: p.detach().clone() for name, p in model.named_parameters()}


def outputs(model: nn.Module, params: dict[str, Tensor], shape: tuple[int, ...], n: int = 4) -> Tensor:
    """At the same random inputs, whatever the parameters."""
    x = torch.randn(n, *shape, dtype=torch.float64, generator=Rng(1).child("inputs").torch())
    out: Tensor = functional_call(model, params, (x,))
    return out


def drawn(sizes: Sequence[int], seed: int = 0) -> list[Tensor]:
    """Positive factors from 0.01 to 100."""
    generator = Rng(seed).child("factors").torch()
    return [10 ** (4 * torch.rand(size, dtype=torch.float64, generator=generator) - 2) for size in sizes]


def times(factors: dict[str, Tensor], params: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: factors[name] * p for name, p in params.items()}


def apart(a: dict[str, Tensor], b: dict[str, Tensor]) -> float:
    """The largest difference of a parameter, relative to the largest entry of its tensor."""
    assert list(a) == list(b)
    return max(float((a[n] - b[n]).abs().max() / b[n].abs().max().clamp_min(1e-300)) for n in a)


class Net(nn.Module):
    """Convolutions `a` and `b` [n, 2, 4, 4] → [n, 3, 4, 4], dense `fc` 3 → 3 and `out` 3 → 2; its forward is given."""

    def __init__(self, forward):
        super().__init__()
        self.a, self.b = nn.Conv2d(2, 3, 3, padding=1), nn.Conv2d(2, 3, 3, padding=1)
        self.fc, self.out = nn.Linear(3, 3), nn.Linear(3, 2)
        self._forward = forward

    def forward(self, x):
        return self._forward(self, x)


def net(forward, *unused):
    """`Net` without the layers `unused`."""
    made = Net(forward)
    for name in unused:
        delattr(made, name)
    return randomised(made)


def assert_masks_keep_outputs(model: nn.Module, shape: tuple[int, ...], seed: int = 0) -> ScalingPlan:
    """Plan a model; masked, it must give the plain outputs, and all of its masks have one canonical form."""
    found, params = plan(model, shape), parameters(model)
    plain, r = outputs(model, params, shape), drawn(found.sizes, seed)
    factors = found.factors(r)
    assert set(factors) == set(params)
    for name, p in params.items():
        assert torch.broadcast_shapes(factors[name].shape, p.shape) == p.shape
    masked = times(factors, params)
    assert apart({"out": outputs(model, masked, shape)}, {"out": plain}) < TOLERANCE
    form = canonical(found, params)
    assert apart({"out": outputs(model, form, shape)}, {"out": plain}) < TOLERANCE
    assert apart(canonical(found, masked), form) < TOLERANCE
    assert apart(canonical(found, form), form) < TOLERANCE
    assert apart(times(found.factors(scales(found, params)), form), params) < TOLERANCE
    return found


def rows(params: dict[str, Tensor], name: str) -> Tensor:
    """Lengths of the rows of a layer, bias included."""
    squares = params[f"{name}.weight"].flatten(1).square().sum(1)
    return (squares + params[f"{name}.bias"].square()).sqrt()
