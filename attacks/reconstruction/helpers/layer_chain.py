"""Models that are a chain of dense and convolutional layers, each followed by an activation that can be undone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from fedarena.problem.client_steps.chain import front_of, is_flatten, plain, steps

EDGE = 1e-7
"""How near to the ends of its range an output of a sigmoid tells its input no more, in single precision."""

DEAD = 1e-5
"""Share of a layer's largest output up to which one of a ReLU counts as 0: outputs are found with an error."""


@dataclass(frozen=True)
class Activation:
    """An elementwise function h = a(z), undone.

    Attributes:
        undo: h → z, where `slope` is not 0; any finite value elsewhere.
        slope: h → a′(z); 0 where h does not tell z.
    """

    undo: Callable[[Tensor], Tensor]
    slope: Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Link:
    """One layer of a chain, with what follows it.

    Attributes:
        name: the layer's. layer: dense or convolutional. activation: what follows.
        shape, out: shapes of one input and of one output.
    """

    name: str
    layer: nn.Linear | nn.Conv2d
    shape: tuple[int, ...]
    out: tuple[int, ...]
    activation: Activation


@dataclass(frozen=True)
class Chain:
    """A whole model: x → (x − mean)/std → links, in order of computation; the last is the output layer."""

    mean: float
    std: float
    links: tuple[Link, ...]


IDENTITY = Activation(lambda h: h, torch.ones_like)


def chain_of(model: nn.Module, input_shape: tuple[int, ...]) -> Chain | str:
    """The layers of a model that is a chain, or what it has that cannot be undone."""
    if type(model) is not nn.Sequential or not plain(model):
        return "the model is no plain chain of layers (nn.Sequential), which are undone from the last to the first"
    links: list[Link] = []
    front, mean, std = front_of(model), 0.0, 1.0
    if front is not None:
        if front.blur or front.size is not None:
            return "inputs are blurred or resized before the first layer, which cannot be undone"
        mean, std = front.mean, front.std
    x = torch.zeros(1, *input_shape).to(next(model.parameters()))
    for name, module in steps(model, ""):
        before = tuple(x.shape[1:])
        with torch.no_grad():
            x = module(x)
        if (type(module) is nn.Linear and len(before) == 1) or (type(module) is nn.Conv2d and simple(module)):
            links.append(Link(name, module, before, tuple(x.shape[1:]), IDENTITY))
        elif (activation := activation_of(module)) and links and links[-1].activation is IDENTITY:
            links[-1] = replace(links[-1], activation=activation)
        elif not (module is front or is_flatten(module) or type(module) is nn.Identity):
            return f"layer {name} ({type(module).__name__}) cannot be undone: its output does not tell its input"
    if len({link.layer for link in links}) < len(links):
        return "a layer occurs twice, so that its gradient is a sum over two places"
    return Chain(mean, std, tuple(links))


def simple(layer: nn.Conv2d) -> bool:
    """Whether all channels of a convolution are connected, and its padding is a number of zeros."""
    return layer.groups == 1 and layer.padding_mode == "zeros" and not isinstance(layer.padding, str)


def activation_of(module: nn.Module) -> Activation | None:
    """How an activation is undone; None for one that cannot be, and for other modules."""
    if type(module) is nn.ReLU:
        return Activation(lambda h: h, lambda h: (h > DEAD * h.abs().max()).to(h))
    if type(module) is nn.LeakyReLU and module.negative_slope > 0:
        low = float(module.negative_slope)
        return Activation(lambda h: torch.where(h > 0, h, h / low), lambda h: torch.where(h > 0, 1.0, low).to(h))
    if type(module) is nn.ELU and module.alpha > 0:
        alpha = float(module.alpha)
        return Activation(
            lambda h: torch.where(h > 0, h, torch.log1p(h.clamp(alpha * (EDGE - 1), 0) / alpha)),
            lambda h: torch.where(h > 0, 1.0, torch.where(h > alpha * (EDGE - 1), h + alpha, 0.0)),
        )
    if type(module) is nn.Sigmoid:
        return Activation(
            lambda h: torch.logit(h, EDGE), lambda h: torch.where((h - 0.5).abs() < 0.5 - EDGE, h * (1 - h), 0.0)
        )
    if type(module) is nn.Tanh:
        return Activation(
            lambda h: torch.atanh(h.clamp(EDGE - 1, 1 - EDGE)),
            lambda h: torch.where(h.abs() < 1 - EDGE, 1 - h.square(), 0.0),
        )
    return None
