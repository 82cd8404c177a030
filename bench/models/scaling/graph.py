"""Which hidden unit scales which entry of every activation of a network.

The network's graph runs on labels instead of numbers: every entry of an activation carries the number of the unit
whose factor r > 0 it has. A dense or convolutional layer gives its output channels new numbers. ReLU, pooling,
reshaping and concatenation pass them on. An addition ties the units that meet in one entry, which share one factor
from then on. Constants, and all that depends on the input alone, carry FIXED: their factor is 1.

The result must hold for batches of any size, in training and in evaluation. The code of a network may depend on the
mode: both modes are traced, and must give the same result. The result must not depend on the batch's axis either. A
factor is the same for all samples, so an operation must leave that axis first and keep its length. A run with two
samples shows a violation that one sample would hide: a reshaping that keeps the length of the first axis keeps samples
apart, and all other operations that read the axis (a mean over it, batch normalisation, a slice) are refused. Code may
still compute with the number of samples or contain a fixed number; hence a second run with three samples, which must
give the same result.
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
from fedarena.models.dropout import Dropout
from fedarena.models.scaling.trace import graph_of, plain
from fedarena.models.scaling.units import FIXED, Units

BATCHES = (2, 3)
"""The number of samples in each run of the graph. A single sample would hide changes of the batch's axis, and two runs
show whether the result depends on the number."""

LAYERS = (nn.Linear, nn.Conv1d, nn.Conv2d)

ALLOWED = (
    "allowed: Linear, Conv1d, Conv2d, ReLU, LeakyReLU, max and average pooling, Dropout, Identity, Flatten, means over "
    "positions, concatenations, additions, multiplications by a number"
)

SAME = {
    *(nn.Identity, Dropout, nn.Dropout, nn.Dropout1d, nn.Dropout2d, F.dropout, F.dropout1d, F.dropout2d),
    *("clone", "contiguous"),
}
"""f(x) = x; dropout is in evaluation, and in training it drops or keeps a scaled entry like a plain one."""

HOMOGENEOUS = {nn.ReLU, nn.LeakyReLU, F.relu, F.leaky_relu, torch.relu, torch.neg, operator.neg, "relu", "neg"}
"""Entry by entry, f(r·x) = r·f(x) for every r > 0."""

POOLS: dict[Any, int] = {
    **dict.fromkeys((nn.MaxPool1d, nn.AvgPool1d, nn.AdaptiveMaxPool1d, nn.AdaptiveAvgPool1d), 1),
    **dict.fromkeys((F.max_pool1d, F.avg_pool1d, F.adaptive_max_pool1d, F.adaptive_avg_pool1d, torch.max_pool1d), 1),
    **dict.fromkeys((nn.MaxPool2d, nn.AvgPool2d, nn.AdaptiveMaxPool2d, nn.AdaptiveAvgPool2d), 2),
    **dict.fromkeys((F.max_pool2d, F.avg_pool2d, F.adaptive_max_pool2d, F.adaptive_avg_pool2d, torch.max_pool2d), 2),
}
"""f(r·x) = r·f(x) if all pooled entries have the same r; the value is the number of pooled axes, which are the last."""

MOVES = {nn.Flatten, torch.flatten, torch.reshape, torch.cat, torch.concat, torch.concatenate}
MOVING = {"flatten": Tensor.flatten, "reshape": Tensor.reshape, "view": Tensor.reshape}
"""Operations that move entries: modules and functions, then methods, each with the function that moves labels."""

MEANS = {torch.mean, torch.sum, "mean", "sum"}
SUMS = {operator.add, operator.iadd, operator.sub, torch.add, torch.sub, "add", "sub"}
PRODUCTS = {operator.mul, torch.mul, "mul"}
QUOTIENTS = {operator.truediv}

RELUS = {nn.ReLU, F.relu, torch.relu, "relu"}
NEGATIONS = {torch.neg, operator.neg, "neg"}
DIFFERENCES = {operator.sub, torch.sub, "sub"}
LEAKY = {nn.LeakyReLU, F.leaky_relu}
"""Operations that change a sign if their slope is below 0."""


@dataclass(frozen=True)
class Hidden:
    """An activation that depends on parameters.

    Attributes:
        units: number of the unit that scales each entry; int64, of the activation's shape [samples, ...].
        layer: the name of the layer whose output this is; None if another operation came after it.
        negated: whether an operation other than a layer changed the sign of a part of it since the last layer or ReLU.
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
        UserError: the model cannot be traced; or a part of it does not pass on factors, and the error names the part;
            or the result depends on the number of samples, or on whether the model is in training.
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
    """Whether two runs give the same layers, in the same order and with the same units."""
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
    """Runs a graph: on numbers before the first layer, on labels after it."""

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
            # A norm may write to its running statistics; copies keep the caller's model unchanged.
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
        """The effect on labels of an operation other than a layer; `key`: its class, function or method's name."""
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
        """Move entries within a sample."""
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
        """The error for shapes that do not fit, with this number of samples or with any."""
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
    """The labels after an operation, marked if it changes the sign of a part of them; `key` as in `_operation`."""
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
    """The shape of a layer's output for an activation, found on the meta device. Raises UserError."""
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
