"""The contract of models: a module's shape, and the distribution of its initial parameters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import nn

from fedarena.core.errors import UserError
from fedarena.core.tensors import Tensors
from fedarena.models.init import draw

M = TypeVar("M", bound=nn.Module)


class Architecture(ABC):
    """A family of modules; the target of a model's card.

    Modules hold no parameters that matter (they are zero) and no state: parameters are drawn by `init` and handed
    over by name. Batch normalisation, where a model offers it, keeps no running statistics, which would be a second,
    hidden upload: it uses those of the batch at hand, in evaluation too. What is frozen is no parameter either.
    """

    def __init__(self, options: Any) -> None:
        self.options = options

    @property
    def warnings(self) -> tuple[str, ...]:
        """What must stand beside every number of a run with this model."""
        return ()

    @abstractmethod
    def module(self, input_shape: tuple[int, ...], n_classes: int) -> nn.Module:
        """The module that maps [n, *input_shape] to logits [n, n_classes].

        Raises:
            UserError: the input does not fit this model.
        """

    def init(self, module: nn.Module, generator: torch.Generator) -> Tensors:
        """Initial parameters by name, of the distribution that `init` names, drawn from `generator` alone."""
        return draw(module, self.options.init, generator)


def blank(make: Callable[[], M]) -> M:
    """Build a module with zero parameters.

    PyTorch's layers initialise themselves from the global generator; on the meta device they draw nothing.
    """
    with torch.device("meta"):
        module = make()
    module.to_empty(device="cpu")
    with torch.no_grad():
        for p in module.parameters():
            p.zero_()
    return module


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
    """Features per sample that a module hands on, from its shapes alone; call it inside `blank`'s `make`."""
    out: torch.Tensor = trunk(torch.empty(1, *input_shape, device="meta"))
    return out.numel()
