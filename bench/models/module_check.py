"""Checks of a module that the harness is to train: it draws nothing at random and keeps nothing between batches."""

from __future__ import annotations

import random
from collections.abc import Mapping
from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

from fedarena.core.errors import UserError, describe, lacks_memory
from fedarena.core.global_generators import kept_generators
from fedarena.core.tensors import kind_of
from fedarena.models.architecture import NORMS_ALLOWED, UnusableLayer, called

SAMPLES = 2
"""A batch of one sample has no variance, which some norms refuse."""


def require_fit(module: nn.Module, input_shape: tuple[int, ...], outputs: int, samples: int = SAMPLES) -> None:
    """Refuse a module that cannot be trained, as `require_pure`, and one whose outputs are not [n, outputs].

    Args:
        samples: of the batch that is tried.

    Raises:
        UnusableLayer: such a module, one without parameters or with shared ones, one for several GPUs, or one whose
            copy uses parameters that are not its own.
    """
    _require_trainable(module)
    try:
        out = require_pure(module, input_shape, samples)
        strays = _strays(module, input_shape, samples)
    except Exception as error:  # it may be a user's, which fails in any way
        if isinstance(error, UserError) or lacks_memory(error):
            raise
        flat = "; nn.Flatten() makes rows of images" if len(input_shape) > 1 else ""
        inputs = [samples, *input_shape]
        told = f"{called('', module)} fails on inputs {inputs}: {describe(error, anywhere=False)}"
        raise UnusableLayer(f"{told}, allowed: a module that takes them{flat}") from error
    if not isinstance(out, Tensor) or out.shape != (samples, outputs):
        inputs = [samples, *input_shape]
        raise UnusableLayer(
            f"{called('', module)} makes {kind_of(out)} of inputs {inputs}, allowed: a tensor {[samples, outputs]}"
        )
    if strays:
        raise UnusableLayer(
            f"{called('', module)} uses a parameter {strays[0]} that a copy of the module does not have, allowed: "
            "parameters that it finds in the module (self), and not in a closure, a list or a hook"
        )


def _require_trainable(module: nn.Module) -> None:
    """Refuse a module without parameters, with shared, frozen or other ones, or for several GPUs."""
    if next(module.parameters(), None) is None:
        raise UnusableLayer(f"{called('', module)} has no parameters, allowed: a module that can be trained")
    for name, layer in module.named_modules():
        if isinstance(layer, nn.DataParallel):
            raise UnusableLayer(
                f"{called(name, layer)} spreads batches over GPUs, allowed: the module inside (.module)"
            )
    once = {id(p): name for name, p in module.named_parameters()}
    for name, p in module.named_parameters(remove_duplicate=False):
        if once[id(p)] != name:
            raise UnusableLayer(f"parameter {once[id(p)]} is also {name}, allowed: a name for each")
    if frozen := [name for name, p in module.named_parameters() if not p.requires_grad]:
        raise UnusableLayer(
            f"{called('', module)} has parameters without a gradient ({', '.join(frozen)}), allowed: parameters that "
            "are trained; what stays as it is can be a buffer (register_buffer)"
        )
    for name, p in module.named_parameters():
        if p.dtype != torch.float32:
            kind = str(p.dtype).removeprefix("torch.")
            raise UnusableLayer(f"parameter {name} is of {kind}, allowed: float32 (model.float())")


def require_initial(module: nn.Module, drawn: Any) -> None:
    """Refuse initial values that are not those of a module's parameters, in single precision."""
    wanted = {name: (list(p.shape), torch.float32) for name, p in module.named_parameters()}
    found = {name: (list(t.shape), t.dtype) for name, t in drawn.items()} if isinstance(drawn, Mapping) else {}
    for name, (shape, _) in wanted.items():
        if found.get(name) != wanted[name]:
            told = f"{kind_of(drawn[name])} of {str(found[name][1])[6:]}" if name in found else "left out"
            raise UnusableLayer(f"initial parameter {name} is {told}, allowed: a tensor {shape} of float32")
    if odd := sorted(found.keys() - wanted.keys()):
        raise UnusableLayer(f"initial parameter {odd[0]} is none of the module's, allowed: {', '.join(wanted)}")


def _strays(module: nn.Module, input_shape: tuple[int, ...], samples: int) -> list[list[int]]:
    """The shapes of parameters that a copy of the module uses though others were passed in the place of all its own.

    A lambda that refers to `self`, for one, goes on with those of the module that was copied.
    """
    params = {name: torch.zeros_like(p).requires_grad_() for name, p in module.named_parameters()}
    with kept_generators(), torch.enable_grad():
        out = functional_call(deepcopy(module), params, (_inputs(input_shape, samples),))
    nodes, seen, strays = [getattr(out, "grad_fn", None)], set(), []
    while nodes:
        if (node := nodes.pop()) is not None and node not in seen:
            seen.add(node)
            leaf = getattr(node, "variable", None)
            if leaf is not None and not any(leaf is p for p in params.values()):
                strays.append(list(leaf.shape))
            nodes += [before for before, _ in node.next_functions]
    return strays


def _inputs(input_shape: tuple[int, ...], samples: int) -> Tensor:
    return torch.rand(samples, *input_shape, generator=torch.Generator().manual_seed(0), dtype=torch.float32)


def require_pure(module: nn.Module, input_shape: tuple[int, ...], samples: int = SAMPLES) -> Any:
    """The outputs of a batch in training mode. Layers with randomness or a state of their own are refused.

    A client step is a pure function, whose randomness comes from the harness alone. A state that a layer keeps between
    batches, such as running statistics, would be a second, hidden upload.

    Raises:
        UnusableLayer: a layer draws from a global generator, or changes its own buffers.
    """
    inputs = _inputs(input_shape, samples)
    before: dict[str, tuple[Any, ...]] = {}
    handles = []
    for name, layer in module.named_modules():
        handles.append(layer.register_forward_pre_hook(partial(_remember, before, name)))
        handles.append(layer.register_forward_hook(partial(_compare, before, name)))
    try:
        with torch.no_grad(), kept_generators():
            return module(inputs)
    finally:
        for handle in handles:
            handle.remove()


def _remember(before: dict[str, tuple[Any, ...]], name: str, layer: nn.Module, *_: Any) -> None:
    before[name] = (_generators(), _buffers(layer))


def _compare(before: dict[str, tuple[Any, ...]], name: str, layer: nn.Module, *_: Any) -> None:
    """Raise UnusableLayer if the layer drew or changed a buffer; the innermost such layer is the first to be told."""
    generators, buffers = before.pop(name)
    if _generators() != generators:
        raise UnusableLayer(
            f"{called(name, layer)} draws from a global generator, allowed: layers without randomness, because equal "
            "configurations must give equal records (for dropout: fedarena.models.dropout)"
        )
    for buffer, value in _buffers(layer).items():
        if buffer not in buffers or not torch.equal(value.nan_to_num(), buffers[buffer].nan_to_num()):
            raise UnusableLayer(
                f"{called(name, layer)} changes its {buffer} with every batch, allowed: layers without a state; "
                f"{NORMS_ALLOWED}"
            )


def _generators() -> tuple[Any, ...]:
    """The states of the global generators, to be compared."""
    name, keys, *rest = np.random.get_state()
    return (random.getstate(), name, np.asarray(keys).tobytes(), *rest, torch.get_rng_state().numpy().tobytes())


def _buffers(layer: nn.Module) -> dict[str, Tensor]:
    """The buffers of a layer, and the tensors that it keeps without having declared them."""
    plain = {name: t for name, t in vars(layer).items() if isinstance(t, Tensor)}
    return {name: t.clone() for name, t in {**dict(layer.named_buffers()), **plain}.items()}
