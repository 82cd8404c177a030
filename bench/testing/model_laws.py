"""Laws of models."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from fedarena.core.errors import UserError, describe, place_of
from fedarena.core.global_generators import kept_generators
from fedarena.core.gradients import grad
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.models.architecture import Architecture, UnusableLayer, made_by, with_layer_names
from fedarena.models.dropout import MASK
from fedarena.models.module_check import SAMPLES, require_pure
from fedarena.testing.law import LawBroken, LawIdle, Method, law, require
from fedarena.testing.same import difference, same

SHAPES = ((1, 20, 20), (3, 32, 32), (13,), (1, 8, 8), (1, 28, 28))
"""Shapes of inputs that laws try, the first that a model takes; the last ones are of models made for one data set."""
CLASSES = 7


def built(method: Method) -> tuple[Architecture, nn.Module, tuple[int, ...]]:
    """A model, its module, and the shape of its inputs, the first of `SHAPES` that it takes.

    Raises:
        LawIdle: it refuses all of them.
        LawBroken: it takes none of them, and fails on some that it does not refuse.
    """
    made: Architecture = method.target(method.options)
    failed = ""
    for shape in SHAPES:
        try:
            module: Any = made.module(shape, CLASSES)
        except UserError as error:
            why = str(error)
            continue
        named = with_layer_names(made_by(made, module))
        try:
            with torch.no_grad(), kept_generators():
                named(torch.zeros(SAMPLES, *shape))
        except Exception as error:  # it may be a user's, which fails in any way
            told = f"model {place_of(type(made).module)} fails on inputs {[SAMPLES, *shape]}"
            failed = failed or f"{told}: {describe(error, anywhere=False)}"
        else:
            return made, named, shape
    if failed:
        raise LawBroken(failed, "take sizes from input_shape, or raise UserError for inputs that it does not take")
    raise LawIdle(f"it takes none of the shapes that laws try: {why}")


def _drawn(method: Method, seed: int = 0) -> tuple[nn.Module, Tensors, Tensor]:
    made, module, shape = built(method)
    return module, made.init(module, Rng(seed).torch()), torch.rand(3, *shape, generator=Rng(5).torch())


def _outputs(module: nn.Module, params: Mapping[str, Tensor], x: Tensor) -> Tensor:
    out: Tensor = functional_call(module, dict(params), (x,))
    return out


@law("model")
def module_is_pure(method: Method) -> None:
    """The module draws nothing at random, and keeps nothing between batches."""
    _, module, shape = built(method)
    try:
        require_pure(module, shape)
    except UnusableLayer as error:
        raise LawBroken(f"its {error}", "take such a layer in place of it") from None


@law("model")
def outputs_fit(method: Method) -> None:
    """The module gives one finite number for each sample and class, and so does its pickled copy."""
    module, params, x = _drawn(method)
    out = _outputs(module, params, x)
    require(out.shape == (3, CLASSES), f"the outputs of 3 samples are {list(out.shape)}", f"give [3, {CLASSES}]")
    lost = int((~out.isfinite()).sum())
    require(lost == 0, f"{lost} of {out.numel()} outputs are not finite", "draw smaller parameters")
    copy = pickle.loads(pickle.dumps(module))
    require(torch.equal(out, _outputs(copy, params, x)), "a pickled copy gives other outputs", "keep plain layers")


@law("model")
def parameters_are_drawn(method: Method) -> None:
    """Initial parameters have the module's names and shapes, and come from the given generator alone."""
    with kept_generators():
        torch.manual_seed(0)
        before = torch.get_rng_state()
        module, params, _ = _drawn(method)
        touched = not torch.equal(before, torch.get_rng_state())
    require(not touched, "the global generator was used", "make the module in `fedarena.models.architecture.blank`")
    own = {name: p.shape for name, p in module.named_parameters()}
    got = {name: p.shape for name, p in params.items()}
    require(list(own.items()) == list(got.items()), f"parameters are {got}, the module's {own}", "use `draw`")
    left = [name for name, p in module.named_parameters() if p.any()]
    require(not left, f"the module holds values of its own: {', '.join(left)}", "make it in `blank`")
    masks = all(
        name.endswith(f".{MASK}") and bool((t == 1).all()) for name, t in module.named_buffers() if MASK in name
    )
    require(masks, "a mask of dropout is not 1", "leave masks as `fedarena.models.dropout` has them")
    again, other = _drawn(method)[1], _drawn(method, 4)[1]
    require(same(params, again), f"the same stream differs by {difference(params, again):.3g}", "draw from `generator`")
    require(not same(params, other), "another stream gives the same parameters", "draw from `generator`")


@law("model")
def gradients_are_finite(method: Method) -> None:
    """The gradient is finite and not zero, can be differentiated again, and is the same under `vmap`."""
    module, params, inputs = _drawn(method)
    x, y = inputs[:, None], torch.tensor([[0], [1], [2]])

    def gradient(x: Tensor, y: Tensor) -> Tensors:
        def loss(p: Tensors) -> Tensor:
            return torch.nn.functional.cross_entropy(functional_call(module, p, (x,)), y)

        found: Tensors = grad(loss)(params)
        return found

    def match(x: Tensor, y: Tensor) -> Tensor:
        """As in gradient matching: a function of the gradient, which is differentiated by the input."""
        return torch.stack([g.square().sum() for g in gradient(x, y).values()]).sum()

    flat = torch.cat([g.flatten() for g in gradient(x[0], y[0]).values()])
    lost = int((~flat.isfinite()).sum())
    require(lost == 0, f"{lost} of {flat.numel()} numbers of the gradient are not finite", "guard roots and divisions")
    require(bool(flat.any()), "the gradient is zero", "let the outputs depend on the parameters")
    batched = vmap(grad(match))(x, y)
    single = torch.stack([grad(match)(x[i], y[i]) for i in range(3)])
    size = float(single.abs().max())
    require(bool(single.any()), "the gradient does not depend on the input", "let the outputs depend on the input")
    away = float((batched - single).abs().max()) / size
    require(
        away <= 1e-3, f"under `vmap` the second derivative differs by {away:.3g} of its size", "treat samples alone"
    )
