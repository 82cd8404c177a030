"""Whether two results are the same, and which tensors something holds."""

from __future__ import annotations

import io
import pickle
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import torch
from torch import Tensor


def same(a: Any, b: Any) -> bool:
    """Whether two results are equal to the last bit, however deep their tensors sit; NaN equals NaN."""
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return a.shape == b.shape and a.dtype == b.dtype and torch.equal(a.nan_to_num(), b.nan_to_num())
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(same(one, other) for one, other in zip(a, b, strict=True))
    if is_dataclass(a) and type(a) is type(b):
        return all(same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    return bool(a == b or (a != a and b != b))


def copied(value: Any) -> Any:
    """A copy of mappings, sequences and dataclasses of tensors that shares no tensor with them."""
    if isinstance(value, Tensor):
        return value.clone()
    if isinstance(value, Mapping):
        return {key: copied(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(copied(one) for one in value)
    if is_dataclass(value) and not isinstance(value, type):
        return type(value)(**{f.name: copied(getattr(value, f.name)) for f in fields(value)})
    return value


def difference(a: Mapping[str, Tensor], b: Mapping[str, Tensor]) -> float:
    """max |a − b| / max(|a|, |b|) over all tensors of two results; infinity where names or shapes differ."""
    if a.keys() != b.keys() or any(a[name].shape != b[name].shape for name in a):
        return float("inf")
    pairs = [(a[name].double(), b[name].double()) for name in a if a[name].numel()]
    size = max((float(torch.maximum(x.abs(), y.abs()).max()) for x, y in pairs), default=0.0)
    away = max((float((x - y).abs().nan_to_num(torch.inf).max()) for x, y in pairs), default=0.0)
    return away / size if size else away


def tensors_in(value: Any) -> list[Tensor]:
    """Every tensor that serialising a value writes out, however deep it sits."""
    found: list[Tensor] = []

    class Spy(pickle.Pickler):
        def reducer_override(self, obj: Any) -> Any:
            if isinstance(obj, Tensor):
                found.append(obj.detach())
            return NotImplemented

    Spy(io.BytesIO()).dump(value)
    return found
