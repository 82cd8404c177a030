"""Models that are a plain chain: flatten, then dense layers, each with at most one elementwise activation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from fedarena.models.preprocess import Preprocess

aten = torch.ops.aten


@dataclass(frozen=True)
class Activation:
    """An elementwise function, and its derivative written in terms of its own output.

    Attributes:
        forward: z → a; may overwrite z.
        backward: (∂L/∂a, a) → ∂L/∂z.
    """

    forward: Callable[[Tensor], Tensor]
    backward: Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Dense:
    """One dense layer of a chain, by the names of its parameters.

    Attributes:
        weight: name of the weight [d_out, d_in].
        bias: name of the bias [d_out], if it has one.
        activation: what follows, if anything does.
    """

    weight: str
    bias: str | None
    activation: Activation | None


def chain_of(model: nn.Module, input_dims: int) -> tuple[Dense, ...] | None:
    """The dense layers of a model that is a chain, or None for any other model.

    Args:
        model: judged by the exact types of its modules, so that a subclass with a forward of its own is no chain.
        input_dims: axes of one input; inputs of more than one axis must be flattened first.

    A `Preprocess` at the head is no layer: the chain takes the outputs of `front_of`.
    """
    if type(model) is not nn.Sequential or not plain(model):
        return None
    layers = _dense_layers(model, flat=input_dims == 1)
    if not layers or layers[-1].activation:
        return None
    # A layer that occurs twice has one set of parameters under two names; such a model is no chain of its parameters.
    names = {n for layer in layers for n in (layer.weight, layer.bias) if n}
    return tuple(layers) if names == {n for n, _ in model.named_parameters()} else None


def _dense_layers(model: nn.Sequential, flat: bool) -> list[Dense] | None:
    """The dense layers, or None where another module than a flattening or an activation is among them.

    Args:
        flat: whether inputs have one axis.
    """
    layers: list[Dense] = []
    front = front_of(model)
    for name, module in steps(model, ""):
        if type(module) is nn.Identity or module is front:
            continue
        if is_flatten(module):
            flat = True
        elif type(module) is nn.Linear and flat:
            layers.append(Dense(f"{name}.weight", bias_name(name, module), None))
        elif (activation := _activation(module)) and layers and layers[-1].activation is None:
            layers[-1] = replace(layers[-1], activation=activation)
        else:
            return None
    return layers


def is_flatten(module: nn.Module) -> bool:
    """Whether a module makes one axis of all axes of a sample."""
    return type(module) is nn.Flatten and (module.start_dim, module.end_dim) == (1, -1)


def bias_name(name: str, module: nn.Module) -> str | None:
    """The name of a layer's bias, if it has one."""
    return f"{name}.bias" if getattr(module, "bias", None) is not None else None


def plain(model: nn.Module) -> bool:
    """Whether its modules compute what their types say: no hooks, and no `forward` that is set on an instance."""
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return not any(
        "forward" in vars(module) or any(getattr(module, kind) for kind in hooks) for module in model.modules()
    )


def front_of(model: nn.Module) -> Preprocess | None:
    """The module that prepares a model's inputs [n, ...] before its first layer, if the model begins with one."""
    first = next(iter(model.children()), None)
    return first if type(first) is Preprocess else None


def steps(model: nn.Sequential, prefix: str) -> Iterator[tuple[str, nn.Module]]:
    """The modules in order, with their names. A `Sequential` within it is replaced by its modules."""
    for name, module in zip(model._modules, model, strict=True):  # named_children() would skip a second occurrence
        if type(module) is nn.Sequential:
            yield from steps(module, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", module


def _activation(module: nn.Module) -> Activation | None:
    if type(module) is nn.ReLU:
        return Activation(torch.relu_, lambda g, a: aten.threshold_backward(g, a, 0))
    if type(module) is nn.Sigmoid:
        return Activation(torch.sigmoid_, lambda g, a: aten.sigmoid_backward(g, a))
    if type(module) is nn.Tanh:
        return Activation(torch.tanh_, lambda g, a: aten.tanh_backward(g, a))
    if type(module) is nn.ELU and module.alpha >= 0:
        alpha = module.alpha  # a negative one has no derivative in terms of the output
        return Activation(
            lambda z: nn.functional.elu_(z, alpha), lambda g, a: aten.elu_backward(g, alpha, 1.0, 1.0, True, a)
        )
    return None
