"""The memory of one client's round: with backpropagation, with forward passes, and with forward passes layer by layer.

BAFFLE (Feng et al. 2023, Section 4.4) cuts the forward pass into layers, so that a small device holds one of them at a
time. "min~max dynamic memory" of its Table 4 is taken as the smallest and the largest over layers of

    input + output + other tensors of its computation + the layer's own perturbed parameters

A layer is a module without submodules that makes a tensor. A module that only views its input (flattening) or
overwrites it is not a layer. An activation that waits for the end of a residual block must be stored somewhere; the
paper does not say where, and it is not counted here.

All figures are counted by `fedarena.core.peak_memory.peak_bytes`. They hold tensors alone: no framework, and no scratch
space that a kernel takes and frees.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from fedarena.core.peak_memory import peak_bytes
from fedarena.core.tensors import nbytes
from fedarena.defenses.baffle.forward_passes import client_bytes
from fedarena.problem.task import Batch, Task


@dataclass(frozen=True)
class RoundMemory:
    """Peak bytes of one client's round, of which W and the batch are always held.

    Attributes:
        held: W and the batch.
        backprop: with the gradient of the batch, computed by backpropagation; `held` included.
        forwards: with forward differences, all layers' perturbed parameters at once; `held` included.
        layers: name → what a layer takes when layers are computed one at a time.
    """

    held: int
    backprop: int
    forwards: int
    layers: Mapping[str, int]

    @property
    def smallest(self) -> int:
        """The smallest value of the layers."""
        return min(self.layers.values())

    @property
    def largest(self) -> int:
        """The largest value of the layers."""
        return max(self.layers.values())


def measure(task: Task, params: Mapping[str, Tensor], batch: Batch) -> RoundMemory:
    """Measure all of it for one client's batch."""
    return RoundMemory(
        nbytes(params) + nbytes({"x": batch.x, "y": batch.y}),
        backprop_bytes(task, params, batch),
        client_bytes(task, params, batch, "forward", batch.x.dtype, len(batch.images()[1])),
        layer_bytes(task, params, batch),
    )


def backprop_bytes(task: Task, params: Mapping[str, Tensor], batch: Batch) -> int:
    """W, the batch, and the peak of the computation of the loss's gradient, the gradient included."""
    x, y = batch.images()
    leaves = {name: p.detach().requires_grad_() for name, p in params.items()}
    _, peak = peak_bytes(lambda: torch.autograd.grad(task.loss(leaves, x, y), list(leaves.values())))
    return nbytes(params) + nbytes({"x": x, "y": y}) + peak


def layer_bytes(task: Task, params: Mapping[str, Tensor], batch: Batch) -> dict[str, int]:
    """Bytes of every layer by its name, in the order of the forward pass; see the module's docstring."""
    model, sizes = copy.deepcopy(task.model), dict[str, int]()

    def watch(name: str, layer: nn.Module) -> None:
        def before(module: nn.Module, args: tuple[Any, ...]) -> None:
            given = [a.clone() for a in args if isinstance(a, Tensor)]  # a layer may overwrite its input
            _, peak = peak_bytes(lambda: module.forward(*given))
            if peak:
                own = sum(p.numel() * p.element_size() for p in module.parameters())
                sizes[name] = sum(a.numel() * a.element_size() for a in given) + peak + own

        layer.register_forward_pre_hook(before)

    for name, module in model.named_modules():
        if not any(module.children()):
            watch(name, module)
    with torch.inference_mode():
        replace(task, model=model).outputs(params, batch.images()[0])
    return sizes
