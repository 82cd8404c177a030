"""The contract of models: a module's shape, and the distributions of its initial parameters."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from fedarena.core.errors import UserError, of_type, type_of
from fedarena.core.tensors import Tensors, single_precision

M = TypeVar("M", bound=nn.Module)

NORMS_ALLOWED = "a norm must have no running statistics and no parameters (affine=False, track_running_stats=False)"


class UnusableLayer(UserError):
    """A layer that the harness cannot train. The message begins with the layer, and the model is put before it."""


def called(name: str, layer: nn.Module) -> str:
    """A layer in messages; a module as a whole has no name."""
    return f"layer '{name}' ({type(layer).__name__})" if name else f"forward step ({type(layer).__name__})"


class Architecture(ABC):
    """A family of modules; the target of a model's card.

    The values of a module's own parameters are zero and never used: `init` draws parameters, which are passed by name.
    A module has no state. Batch normalisation, if a model offers it, keeps no running statistics, which would be a
    second, hidden upload. It uses those of the present batch, in evaluation too. What clients would show by them is
    sent where the schedule says so (`batch_statistics`). Frozen weights are not parameters.
    A module draws nothing at random (`fedarena.models.module_check` enforces both). A layer that needs random numbers,
    as dropout does, is a `fedarena.models.drawn.Drawn`, to which they are passed.
    """

    def __init__(self, options: Any) -> None:
        self.options = options

    @property
    def warnings(self) -> tuple[str, ...]:
        """Texts that must be shown beside every number of a run with this model."""
        return ()

    @abstractmethod
    def module(self, input_shape: tuple[int, ...], n_classes: int) -> nn.Module:
        """The module that maps [n, *input_shape] to logits [n, n_classes].

        Raises:
            UserError: the input does not fit this model.
        """

    def init(self, module: nn.Module, generator: torch.Generator) -> Tensors:
        """Initial parameters by name, drawn from `generator` alone.

        They have the distribution that the option `init` names; of models without this option PyTorch's own.
        """
        return draw(module, getattr(self.options, "init", "default"), generator)


def blank(make: Callable[[], M]) -> M:
    """Build a module as `zeroed`, but on the meta device where that does, which is faster.

    A tensor that is neither a parameter nor a buffer would stay on the meta device.

    Raises:
        UnusableLayer: `make` makes something else.
    """
    with torch.device("meta"), single_precision():
        module = _module(make())
    if next(module.buffers(), None) is not None:  # the meta device does not keep their values
        return zeroed(make)
    # `Module.to_empty` does the same, and imports sympy and a part of torch for it: a quarter of a second.
    values = {name: torch.zeros(value.shape, dtype=value.dtype) for name, value in module.state_dict().items()}
    module.load_state_dict(values, assign=True)
    return module


def zeroed(make: Callable[[], M]) -> M:
    """Build a module with zero parameters, in single precision. Its buffers have the values that `make` gives them.

    PyTorch's layers initialise themselves from the global generator, which is given back as it was.

    Raises:
        UnusableLayer: `make` makes something else.
    """
    with torch.random.fork_rng(devices=[]), single_precision():
        return _without_values(_module(make()))


def _module(made: M) -> M:
    if not isinstance(made, nn.Module):
        raise UnusableLayer(f"function made {type_of(made)}, allowed: an nn.Module")
    return made


def _without_values(module: M) -> M:
    with torch.no_grad():
        for p in module.parameters():
            p.data = torch.zeros_like(p)  # a buffer may share the memory of its values
    return module


def made_by(architecture: Architecture, made: Any) -> nn.Module:
    """What `Architecture.module` made. Raises UserError, with its place, where it is no module."""
    module: nn.Module = of_type(nn.Module, made, "model", type(architecture).module)
    return module


def with_layer_names(module: nn.Module) -> nn.Module:
    """The module, or around one that is itself a layer a module in which this layer has a name."""
    return nn.Sequential(module) if isinstance(module, nn.Linear | nn.Conv2d) else module


def image_shape(name: str, input_shape: tuple[int, ...], smallest: int) -> tuple[int, int, int]:
    """[channels, height, width] of a model that needs images of at least `smallest` pixels a side. Raises UserError."""
    shown = "x".join(map(str, input_shape))
    if len(input_shape) != 3:
        raise UserError(f"option 'model' is {name}, which takes images [channels, height, width]; inputs are {shown}")
    channels, height, width = input_shape
    if min(height, width) < smallest:
        raise UserError(
            f"option 'model' is {name}, which takes images of at least {smallest}x{smallest} pixels; inputs are {shown}"
        )
    return channels, height, width


def width_after(trunk: nn.Module, input_shape: tuple[int, ...]) -> int:
    """The number of features per sample that a module outputs, from shapes alone; call it inside `blank`'s `make`."""
    out: torch.Tensor = trunk(torch.empty(1, *input_shape))
    return out.numel()


Distribution = Callable[[nn.Linear | nn.Conv2d, torch.Generator], tuple[Tensor, Tensor]]
"""(layer, generator) → (weight, bias) with the shapes of the layer's own weight and [d_out]."""


def draw(module: nn.Module, distribution: str, generator: torch.Generator) -> Tensors:
    """Draw every parameter of a module of dense and convolutional layers, in the order of the module.

        default       weights and biases U(±1/√fan_in), as PyTorch's layers do by themselves
        xavier-he     dense weights N(0, 2/(fan_in + fan_out)) (Glorot & Bengio 2010), convolutions N(0, 2/(k²·c_out))
                      (He et al. 2015, fan-out form), biases zero. The two-stage DP paper's code draws weights in this
                      way, and biases as `default`
        uniform-half  weights and biases U(−½, ½): Zhu et al. 2019 (DLG)
        kaiming       weights N(0, 2/fan_in), dense ones too (He et al. 2015, fan-in form), biases zero

    fan_in counts the inputs of one output, c_in·k² for a convolution.

    Args:
        module: gives names and shapes; its own values are neither read nor changed.
        distribution: one of `DISTRIBUTIONS`.
        generator: the only source of randomness.

    Raises:
        UnusableLayer: a layer with parameters that these distributions do not cover.
    """
    drawn: Tensors = {}
    for name, layer in module.named_modules():
        own = dict(layer.named_parameters(recurse=False))
        if not own:
            continue
        if not isinstance(layer, nn.Linear | nn.Conv2d):
            raise UnusableLayer(
                f"{called(name, layer)} has parameters without a distribution of initial values, allowed: those of "
                f"Linear and Conv2d; {NORMS_ALLOWED}"
            )
        weight, bias = DISTRIBUTIONS[distribution](layer, generator)
        drawn[f"{name}.weight"] = weight
        if "bias" in own:
            drawn[f"{name}.bias"] = bias
    return drawn


def default(layer: nn.Linear | nn.Conv2d, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """U(±1/√fan_in), weights then biases."""
    bound = 1 / math.sqrt(layer.weight[0].numel())
    return _uniform(layer, bound, generator)


def uniform_half(layer: nn.Linear | nn.Conv2d, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """U(−½, ½), weights then biases."""
    return _uniform(layer, 0.5, generator)


def xavier_he(layer: nn.Linear | nn.Conv2d, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Normal weights, zero biases."""
    shape = layer.weight.shape
    receptive = shape[2:].numel()  # k² of a convolution, 1 of a dense layer
    fans = shape[0] * receptive if isinstance(layer, nn.Conv2d) else shape[0] + shape[1]
    return torch.randn(shape, generator=generator) * math.sqrt(2 / fans), torch.zeros(shape[0])


def kaiming(layer: nn.Linear | nn.Conv2d, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Normal weights that keep a signal's scale through ReLUs, zero biases."""
    shape = layer.weight.shape
    return torch.randn(shape, generator=generator) * math.sqrt(2 / shape[1:].numel()), torch.zeros(shape[0])


def _uniform(layer: nn.Linear | nn.Conv2d, bound: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    shape = layer.weight.shape
    weight = torch.empty(shape).uniform_(-bound, bound, generator=generator)
    return weight, torch.empty(shape[0]).uniform_(-bound, bound, generator=generator)


DISTRIBUTIONS: dict[str, Distribution] = {
    "default": default,
    "xavier-he": xavier_he,
    "uniform-half": uniform_half,
    "kaiming": kaiming,
}
