"""An aggregation rule as a function of arrays, apart from any federation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fedarena.contracts.aggregator import Aggregator, Call, checked
from fedarena.contracts.baseline import BASELINE
from fedarena.core import given, registry
from fedarena.core.errors import UserError, type_of
from fedarena.core.global_generators import generators_of
from fedarena.core.options import to_text
from fedarena.core.rng import LARGEST_SEED, Rng
from fedarena.federation import compose

Array = npt.NDArray[Any] | Tensor
Upload = Array | Sequence[float] | Mapping[str, Array] | Sequence[Array]
"""What a client sends: a vector [d], a state dict, or a list of arrays."""
Uploads = Array | Sequence[Upload]
"""Rows [n, d], or a list of n uploads."""
Answer = Array | dict[str, Array] | list[Array]


def aggregate(
    rule: str,
    uploads: Uploads,
    f: int,
    *,
    reference: Upload | None = None,
    seed: int = 0,
    **options: Any,
) -> Answer:
    """What a rule, by its name, makes of one round's uploads; see `fedarena.api.aggregate`. Raises UserError."""
    made = rule_by_name(rule, options)
    if hasattr(uploads, "to_numpy"):  # a table
        uploads = given.numbers("uploads", uploads).numpy()
    rows, shapes = _rows("uploads", uploads)
    assumed = given.integer("f", f, 0, len(rows) - 1)
    made.check(len(rows), assumed)
    if made.auxiliary and reference is None:
        raise UserError(f"rule '{rule}' compares with an upload of the server's own data: give reference")
    own = None if reference is None else _rows("reference", [reference])[0][0].to(rows)
    if own is not None and own.shape != rows[0].shape:
        raise UserError(f"reference has {len(own)} numbers, allowed: {rows.shape[1]}, as each upload has")
    rng = Rng(given.integer("seed", seed, 0, LARGEST_SEED))
    call = Call(
        weights=torch.ones(len(rows)),
        f=assumed,
        memory={},
        rng=rng,
        reference=None if own is None else lambda: own,
        shapes=shapes,
    )
    with generators_of(rng):
        returned = made(rows.clone(), call)  # it may work in place, too
    return _like(checked(returned, made, rows).vector.detach(), uploads[0])


def rule_by_name(name: str, options: Mapping[str, Any]) -> Aggregator:
    """A rule with its wrappers, from values of options. Raises UserError."""
    if not isinstance(name, str):
        raise UserError(f"rule is {type_of(name)}, allowed: a name; one of your own has its card's name")
    parts = name.split("+")
    for part in parts:
        if part not in registry.registries()["defense"]:
            registry.find_part(part)
    for option in options:
        of, dot, _ = option.rpartition(".")
        if dot and of not in parts:
            raise UserError(f"option '{option}' is of '{of}', which is none of {', '.join(parts)}")
    spec = compose.parse_defense(name, {option: to_text(value) for option, value in options.items()})
    made = compose.make_rule(spec.rest)
    if made is None or spec.name != BASELINE:
        raise UserError(
            f"rule is '{name}', allowed: an aggregation rule, or WRAPPER+RULE (see `fa.methods('aggregator')`)"
        )
    return made


LARGEST = {torch.float32: 1e16, torch.float64: 1e150}
"""The largest values of uploads, by their type: rules that measure distances add up squares."""


def _rows(name: str, uploads: Uploads) -> tuple[Tensor, tuple[tuple[int, ...], ...]]:
    """Uploads as rows [n, d], and the shapes of the tensors that a row is made of. Raises UserError."""
    if isinstance(uploads, Tensor | np.ndarray):
        rows = _real(name, uploads)
        if rows.dim() != 2 or not rows.numel():
            raise UserError(f"{name} have the shape {list(rows.shape)}, allowed: [n, d] with n and d at least 1")
        return rows, ()
    if not isinstance(uploads, Sequence) or isinstance(uploads, str | bytes):
        raise UserError(f"{name} are {type_of(uploads)}, allowed: an array, a tensor, or a list of uploads")
    if not uploads:
        raise UserError(f"{name} are empty, allowed: at least one")
    parts = [_named(f"{name}[{i}]", one) for i, one in enumerate(uploads)]
    shapes = {key: tuple(t.shape) for key, t in parts[0].items()}
    for i, one in enumerate(parts):
        if {key: tuple(t.shape) for key, t in one.items()} != shapes:
            raise UserError(f"{name}[{i}] has other names or shapes than {name}[0], allowed: the same in all")
    flat = torch.stack([torch.cat([one[key].flatten() for key in shapes]) for one in parts])
    return flat, () if _layers(uploads[0]) is None else tuple(shapes.values())


def _layers(upload: Upload) -> dict[Any, Array] | None:
    """The arrays of an upload by name or, in a list, by number; None for a vector."""
    if isinstance(upload, Mapping):
        return dict(upload)
    if isinstance(upload, list | tuple) and any(isinstance(t, Tensor | np.ndarray) and t.ndim for t in upload):
        return dict(enumerate(upload))
    return None


def _named(name: str, upload: Upload) -> dict[Any, Tensor]:
    """An upload's tensors by their names; a vector has none. Raises UserError."""
    layers: dict[Any, Any] | None = _layers(upload)
    parts = {key: _real(name, t) for key, t in ({None: upload} if layers is None else layers).items()}
    if not any(t.numel() for t in parts.values()):
        raise UserError(f"{name} has no numbers, allowed: at least one")
    if None in parts and parts[None].dim() != 1:
        raise UserError(f"{name} has the shape {list(parts[None].shape)}, allowed: [d]")
    return parts


def _real(name: str, values: Any) -> Tensor:
    t = given.numbers(name, values)
    if t.dtype == torch.bool:
        raise UserError(f"{name}: truth values, allowed: numbers")
    t = t if t.is_floating_point() and t.dtype != torch.bfloat16 else t.float()  # numpy, which sorts, has no bfloat16
    largest = float(t.abs().max()) if t.numel() else 0.0
    if largest > (allowed := LARGEST.get(t.dtype, largest)):
        raise UserError(f"{name}: values of {largest:.1g}, allowed: up to {allowed:.0e}, whose squares can be added up")
    return t


def _like(vector: Tensor, one: Any) -> Answer:
    """A vector [d] as what one upload is."""
    if (layers := _layers(one)) is not None:
        parts = vector.split([int(np.prod(np.shape(t))) for t in layers.values()])
        named = {key: _as(part.reshape(np.shape(t)), t) for (key, t), part in zip(layers.items(), parts, strict=True)}
        return named if isinstance(one, Mapping) else list(named.values())
    if not given.numbers("upload", one).is_floating_point():
        return vector if isinstance(one, Tensor) else vector.numpy()
    return _as(vector, one)


def _as(t: Tensor, like: Any) -> Array:
    """Values of the type of `like`, whole ones to the nearest."""
    if isinstance(like, Tensor):
        return t.to(like.dtype) if like.is_floating_point() else t.round().to(like.dtype)
    kind = np.asarray(like).dtype
    return (t if kind.kind == "f" else t.round()).numpy().astype(kind)
