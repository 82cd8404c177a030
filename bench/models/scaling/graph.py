"""Which hidden unit scales which entry of every activation of a network.

The network's graph runs on labels in place of numbers: every entry of an activation carries the number of the unit
whose factor r > 0 it has. A dense or convolutional layer gives its output channels new numbers; ReLU, pooling,
reshaping and concatenation hand them on; an addition ties the units that meet in one entry, which share one factor
from then on. What depends on the input alone, and constants, carry FIXED: their factor is 1.

A network is run with batches of any size, in training, in evaluation and by who guesses a batch, so that what is found
must hold for all. The code of a network may ask which of the two it is in: both are traced, and must find the same.
Labels say nothing of the sample that an entry belongs to, since a factor is one for all samples, and
all that an operation may do to the batch's axis is to leave it first and as long as it was. Two samples show that,
where one would hide it: a reshaping that keeps the first axis's length keeps each sample to itself, and anything else
that reads the axis (a mean over it, batch normalisation, a slice) is refused whatever its size. What is left is code
that computes with the number of samples, or writes one down: hence a second run, with three, which must find the same.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn
from torch.func import functional_call

from fedarena.core.errors import UserError
from fedarena.models.scaling.trace import graph_of, plain
from fedarena.models.scaling.units import FIXED, Units

BATCHES = (2, 3)
"""How many samples run through the graph, run by run; a single one would hide what an operation does to the batch's
axis, and several runs show whether what is found depends on how many they are."""

LAYERS = (nn.Linear, nn.Conv1d, nn.Conv2d)

ALLOWED = (
    "allowed: Linear, Conv1d, Conv2d, ReLU, LeakyReLU, max and average pooling, Dropout, Identity, Flatten, means over "
    "positions, concatenations, additions, multiplications by a number"
)

SAME = {nn.Identity, nn.Dropout, nn.Dropout1d, nn.Dropout2d, F.dropout, F.dropout1d, F.dropout2d, "clone", "contiguous"}
"""f(x) = x; dropout is in evaluation, and in training it drops or keeps a scaled entry like a plain one."""

HOMOGENEOUS = {nn.ReLU, nn.LeakyReLU, F.relu, F.leaky_relu, torch.relu, torch.neg, operator.neg, "relu", "neg"}
"""Entry by entry, f(r·x) = r·f(x) for every r > 0."""

POOLS: dict[Any, int] = {
    **dict.fromkeys((nn.MaxPool1d, nn.AvgPool1d, nn.AdaptiveMaxPool1d, nn.AdaptiveAvgPool1d), 1),
    **dict.fromkeys((F.max_pool1d, F.avg_pool1d, F.adaptive_max_pool1d, F.adaptive_avg_pool1d, torch.max_pool1d), 1),
    **dict.fromkeys((nn.MaxPool2d, nn.AvgPool2d, nn.AdaptiveMaxPool2d, nn.AdaptiveAvgPool2d), 2),
    **dict.fromkeys((F.max_pool2d, F.avg_pool2d, F.adaptive_max_pool2d, F.adaptive_avg_pool2d, torch.max_pool2d), 2),
}
"""f(r·x) = r·f(x) if r is one for all that is pooled; the number of axes pooled, which are the last."""

MOVES = {nn.Flatten, torch.flatten, torch.reshape, torch.cat, torch.concat, torch.concatenate}
MOVING = {"flatten": Tensor.flatten, "reshape": Tensor.reshape, "view": Tensor.reshape}
"""Entries change places: modules and functions, then methods with what does the same to labels."""

MEANS = {torch.mean, torch.sum, "mean", "sum"}
SUMS = {operator.add, operator.iadd, operator.sub, torch.add, torch.sub, "add", "sub"}
PRODUCTS = {operator.mul, torch.mul, "mul"}
QUOTIENTS = {operator.truediv}

RELUS = {nn.ReLU, F.relu, torch.relu, "relu"}
NEGATIONS = {torch.neg, operator.neg, "neg"}
DIFFERENCES = {operator.sub, torch.sub, "sub"}
LEAKY = {nn.LeakyReLU, F.leaky_relu}
"""With a slope below 0 they change a sign."""


@dataclass(frozen=True)
class Hidden:
    """An activation that depends on parameters.

    Attributes:
        units: number of the unit that scales each entry; int64, of the activation's shape [samples, ...].
        layer: the name of the layer whose output this is, None if anything came after it.
        negated: whether the sign of a part of it was changed, by no layer, since the last layer or ReLU.
    """

    units: Tensor
    layer: str | None = None
    negated: bool = False


@dataclass(frozen=True)
class Layer:
    """One layer.

    Attributes:
        name: of the module.
        module: the dense or convolutional layer.
        rows: numbers of the units that it writes [out].
        columns: number of the unit that scales each column of its weight [in]; for convolutions, each input channel.
        negated: `Hidden.negated` of what it reads.
    """

    name: str
    module: nn.Linear | nn.Conv1d | nn.Conv2d
    rows: Tensor
    columns: Tensor
    negated: bool = False


def read(model: nn.Module, input_shape: tuple[int, ...]) -> tuple[list[Layer], Units]:
    """The layers in the order of execution, but the output layer last, and which of their units are tied.

    Args:
        model: maps [n, *input_shape] to [n, outputs].

    Raises:
        UserError: the model cannot be traced, or a part of it does not hand on factors; names the part; or
            what is found depends on the number of samples, or on whether the model is in training.
    """
    for name, module in model.named_modules():
        if module._forward_hooks or module._forward_pre_hooks:  # a trace does not show what they do
            raise UserError(f"layer '{name}' ({type(module).__name__}) has hooks, {ALLOWED}")
    graph = graph_of(model)
    layers_and_units, *others = (_run(model, graph, samples, input_shape) for samples in BATCHES)
    if not all(_same(layers_and_units, other) for other in others):
        raise UserError(
            f"the model's graph scales other units for {BATCHES[1]} samples than for {BATCHES[0]}, allowed: "
            "operations that do not depend on the size of the batch"
        )
    copy = deepcopy(model).train(not model.training)
    if not _same(layers_and_units, _run(copy, graph_of(copy), BATCHES[0], input_shape)):
        raise UserError(
            "the model's graph scales other units in evaluation than in training, allowed: the same layers in both"
        )
    return layers_and_units


def _run(model: nn.Module, graph: fx.Graph, samples: int, input_shape: tuple[int, ...]) -> tuple[list[Layer], Units]:
    """`read` for one number of samples."""
    run = _Run(model, graph, samples)
    like = next(model.parameters(), torch.empty(0))
    out = run.run(like.new_zeros(samples, *input_shape))
    return run.finish(out), run.units


def _same(one: tuple[list[Layer], Units], other: tuple[list[Layer], Units]) -> bool:
    """Whether two runs found the same layers, in the same order, and the same of each."""
    (layers, units), (others, more) = one, other
    return (
        torch.equal(units.table, more.table)
        and [x.name for x in layers] == [x.name for x in others]
        and all(
            torch.equal(a.rows, b.rows) and torch.equal(a.columns, b.columns)
            for a, b in zip(layers, others, strict=True)
        )
    )


class _Run(fx.Interpreter):
    """Runs a graph: on numbers what depends on the input alone, on labels what comes after a layer."""

    def __init__(self, model: nn.Module, graph: fx.Graph, samples: int) -> None:
        super().__init__(model, graph=graph)
        self.samples = samples
        self.extra_traceback = False  # it would be written into the text of errors
        self.units = Units()
        self._layers: list[Layer] = []
        self._used: set[int] = set()

    def run_node(self, n: fx.Node) -> Any:
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        hidden = any(isinstance(self.env[m], Hidden) for m in n.all_input_nodes)
        if n.op == "call_module":
            module, what = self.fetch_attr(str(n.target)), f"layer '{n.target}'"
            what += f" ({type(module).__name__})"
            if type(module) in LAYERS:
                return self._layer(str(n.target), module, what, args[0] if args else kwargs["input"])
            if hidden or not plain(module):
                result = self._operation(type(module), module, what, args, kwargs)
                return _signed(result, type(module), (*args, getattr(module, "negative_slope", 0)), kwargs)
            # A norm may write to its running statistics: to copies, for the model is not ours to change.
            return functional_call(module, {name: b.clone() for name, b in module.named_buffers()}, args, kwargs)
        if hidden and n.op != "output":
            result = self._operation(n.target, n.target, f"operation '{n.name}'", args, kwargs)
            return _signed(result, n.target, args, kwargs)
        value = super().run_node(n)
        if isinstance(value, nn.Parameter):
            raise UserError(f"parameter '{n.target}' is used outside of a layer, {ALLOWED}")
        return value

    def finish(self, out: object) -> list[Layer]:
        """The layers, of which the output layer is moved to the end, its channels fixed. Raises UserError."""
        last = next((x for x in self._layers if isinstance(out, Hidden) and x.name == out.layer), None)
        if last is None or not isinstance(last.module, nn.Linear):
            raise UserError("the model's output is not that of a layer of class Linear, allowed: its output, unchanged")
        if not self.units.fix(last.rows):
            raise UserError(
                f"layer '{last.name}' is the output, and added to another layer's, allowed: one or the other"
            )
        for name, p in self.module.named_parameters():
            if id(p) not in self._used:
                raise UserError(f"parameter '{name}' belongs to no layer that the model uses, {ALLOWED}")
        return [*(x for x in self._layers if x is not last), last]

    def _layer(self, name: str, module: Any, what: str, x: Any) -> Hidden:
        units, weight = _labels(x), module.weight
        dense = isinstance(module, nn.Linear)
        if not self._used.isdisjoint(map(id, module.parameters())):
            raise UserError(f"{what} is used twice or shares its parameters, allowed: layers used once")
        self._used.update(map(id, module.parameters()))
        if not dense and module.groups != 1:
            raise UserError(f"{what} has groups={module.groups}, allowed: 1")
        _check_axes(what, units, weight.ndim)
        on_meta = {key: p.to("meta") for key, p in module.named_parameters()}
        shape = _shape(lambda t: functional_call(module, on_meta, (t,)), what, units, weight.dtype)
        rows = self.units.new(len(weight), name)
        negated = isinstance(x, Hidden) and x.negated
        self._layers.append(Layer(name, module, rows, self._channels(units, what), negated))
        return Hidden(_spread(rows, shape), name)

    def _operation(self, key: Any, call: Any, what: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What anything but a layer does to labels; `key` is its class, its function or its method's name."""
        x = args[0] if args else kwargs.get("input")
        if isinstance(x, Hidden):
            if key is getattr and args[1] == "shape":
                return x.units.shape
            if key in ("size", "dim"):
                return getattr(x.units, key)(*args[1:], **kwargs)
            if key in SAME:
                return x
            if key in HOMOGENEOUS:
                return Hidden(x.units)
            if key in POOLS:
                return self._pool(what, x.units, POOLS[key], lambda t: call(t, *args[1:], **kwargs))
            if key in MEANS:
                return self._mean(what, x.units, *args[1:], **kwargs)
        if key in MOVES or key in MOVING:
            return self._move(what, MOVING.get(key, call), args, kwargs)
        if key in SUMS | PRODUCTS | QUOTIENTS:
            a, b = [*args, *(kwargs[k] for k in ("input", "other") if k in kwargs)][:2]
            return self._arithmetic(what, key, a, b)
        raise UserError(f"{what} does not keep the masks, {ALLOWED}")

    def _pool(self, what: str, units: Tensor, axes: int, call: Callable[[Tensor], Any]) -> Hidden:
        _check_axes(what, units, 2 + axes)
        return Hidden(_spread(self._channels(units, what), _shape(call, what, units)))

    def _move(self, what: str, call: Callable[..., Tensor], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Hidden:
        """Entries change places within a sample."""
        args, kwargs = fx.node.map_aggregate((args, kwargs), _labels)
        try:
            moved = call(*args, **kwargs)
        except RuntimeError as error:
            raise self._wrong_size(what, error) from error
        if moved.shape[0] != self.samples:
            raise UserError(f"{what} changes the batch's axis, allowed: changes within a sample")
        return Hidden(moved)

    def _arithmetic(self, what: str, key: Any, a: Any, b: Any) -> Hidden:
        """A sum of activations, or an activation times a number."""
        if key in SUMS:
            return self._sum(what, a, b)
        if isinstance(b, int | float) or (isinstance(a, int | float) and key in PRODUCTS):
            return Hidden(_labels(a if isinstance(a, Hidden) else b))
        raise UserError(f"{what} does not keep the masks, {ALLOWED}")

    def _mean(self, what: str, units: Tensor, dim: Any = None, keepdim: bool = False, **_: Any) -> Hidden:
        axes = tuple(range(units.ndim)) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
        if any(axis % units.ndim == 0 for axis in axes):
            raise UserError(f"{what} goes over the batch, allowed: within a sample")
        shared = self.units.table[units]
        low = shared.amin(axes, keepdim)
        if not torch.equal(low, shared.amax(axes, keepdim)):
            raise UserError(f"{what} mixes channels, allowed: means over positions")
        return Hidden(low)

    def _sum(self, what: str, a: Any, b: Any) -> Hidden:
        for one, other in ((a, b), (b, a)):
            if isinstance(one, int | float) and one == 0:  # where Python's sum begins
                return Hidden(_labels(other))
        x, y = (torch.tensor(FIXED) if isinstance(t, int | float) else _labels(t) for t in (a, b))
        try:
            x, y = torch.broadcast_tensors(x, y)
        except RuntimeError as error:
            raise self._wrong_size(what, error) from error
        self.units.tie(x[0], y[0], what)
        return Hidden(x)

    def _wrong_size(self, what: str, error: RuntimeError) -> UserError:
        """Shapes that do not fit, be it with this number of samples or with any."""
        why = " ".join(str(error).split())[:200]
        return UserError(f"{what} does not work with {self.samples} samples, allowed: batches of any size: {why}")

    def _channels(self, units: Tensor, what: str) -> Tensor:
        """[channels], from labels [samples, channels, ...] that are the same at all positions of a channel."""
        columns = self.units.table[units[0].flatten(1)] if units.ndim > 2 else self.units.table[units[0].unsqueeze(1)]
        if bool((columns != columns[:, :1]).any()):
            raise UserError(
                f"{what} reads positions of one channel that are scaled apart, allowed: channels as a whole"
            )
        return columns[:, 0]


def _signed(result: Any, key: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What an operation made of labels, with whether the sign of a part of it is changed; `key` as in `_operation`."""
    if not isinstance(result, Hidden):
        return result
    given: list[Any] = []
    fx.node.map_aggregate((args, kwargs), given.append)
    changes = key in NEGATIONS or (key in DIFFERENCES and isinstance([*args, *kwargs.values()][-1], Hidden))
    if key in PRODUCTS | QUOTIENTS | LEAKY | SUMS:  # by a number below 0, a slope, or alpha
        changes = changes or any(isinstance(v, int | float) and v < 0 for v in given)
    before = any(isinstance(v, Hidden) and v.negated for v in given)
    return replace(result, negated=(before or changes) and key not in RELUS)


def _labels(x: Any) -> Any:
    """The labels of an activation; of a tensor without parameters in it, all FIXED; anything else as it is."""
    if isinstance(x, Tensor):
        return torch.full(x.shape, FIXED)
    return x.units if isinstance(x, Hidden) else x


def _check_axes(what: str, units: Tensor, axes: int) -> None:
    if units.ndim != axes:
        raise UserError(f"{what} gets samples of {units.ndim - 1} axes, allowed: {axes - 1}")


def _shape(
    call: Callable[[Tensor], Any], what: str, units: Tensor, dtype: torch.dtype = torch.float32
) -> tuple[int, ...]:
    """The shape of what a layer makes of an activation, found on the meta device. Raises UserError."""
    try:
        out = call(torch.empty(units.shape, dtype=dtype, device="meta"))
    except RuntimeError as error:
        shown = "x".join(map(str, units.shape[1:]))
        raise UserError(f"{what} does not take inputs of {shown}: {' '.join(str(error).split())[:200]}") from error
    if not isinstance(out, Tensor):
        raise UserError(f"{what} returns more than one tensor, allowed: one")
    return tuple(out.shape)


def _spread(channels: Tensor, shape: tuple[int, ...]) -> Tensor:
    """[channels] → [samples, channels, ...], the same at all positions."""
    return channels.reshape(-1, *(1,) * (len(shape) - 2)).expand(shape)
