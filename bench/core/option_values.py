"""Values of options: from text and to text, whether one has the declared type and lies in the declared range."""

from __future__ import annotations

import math
import operator
import types
import typing
from collections.abc import Mapping
from typing import Any


def to_text(value: Any) -> str:
    """An option's value as one writes it on the command line; `parse_options` reads it back."""
    if isinstance(value, tuple):
        return ",".join(to_text(item) for item in value)
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return str(value)


def within(value: Any, meta: Mapping[str, Any]) -> bool:
    if meta["choices"] is not None and value not in meta["choices"]:
        return False
    if isinstance(value, float) and not math.isfinite(value):
        return False
    bounds = (
        (meta["low"], operator.ge),
        (meta["above"], operator.gt),
        (meta["high"], operator.le),
        (meta["below"], operator.lt),
    )
    return all(bound is None or holds(value, bound) for bound, holds in bounds)


def allowed(hint: Any, meta: Mapping[str, Any]) -> str:
    if meta["choices"] is not None:
        return ", ".join(str(c) for c in meta["choices"])
    inner = scalar(hint)
    if inner is bool:
        return "true, false"
    low, above, high, below = (meta[k] for k in ("low", "above", "high", "below"))
    left = f"[{low:g}" if low is not None else f"({above:g}" if above is not None else "(-inf"
    right = f"{high:g}]" if high is not None else f"{below:g})" if below is not None else "inf)"
    if inner in (int, float):
        return f"{type_name(hint)} in {left}, {right}"
    return type_name(hint)


def type_name(hint: Any) -> str:
    if typing.get_origin(hint) is tuple:
        return f"{type_name(typing.get_args(hint)[0])},..."
    args = typing.get_args(hint)
    if args:
        return " or ".join("none" if a is type(None) else type_name(a) for a in args)
    words = {int: "integer", float: "number", str: "text", bool: "boolean"}
    return words.get(hint, getattr(hint, "__name__", str(hint)))


def _optional(hint: Any) -> Any | None:
    """T of `T | None` (however it is written), else None."""
    args = typing.get_args(hint)
    if typing.get_origin(hint) in (types.UnionType, typing.Union) and len(args) == 2 and type(None) in args:
        return next(a for a in args if a is not type(None))
    return None


def scalar(hint: Any) -> Any:
    """The scalar type of `T`, `T | None` or `tuple[T, ...]`."""
    if (some := _optional(hint)) is not None:
        return scalar(some)
    if typing.get_origin(hint) is tuple:
        item, *rest = typing.get_args(hint)
        return item if rest == [...] else hint
    return hint


def is_a(value: Any, hint: Any) -> bool:
    """Whether a value has exactly the declared type: 1 is no float and True no int."""
    if (some := _optional(hint)) is not None:
        return value is None or is_a(value, some)
    if typing.get_origin(hint) is tuple:
        return type(value) is tuple and all(type(item) is scalar(hint) for item in value)
    return type(value) is hint


def convert(text: str, hint: Any) -> Any:
    """Raises ValueError where it does not parse."""
    if (some := _optional(hint)) is not None:
        return None if text.strip().lower() == "none" else convert(text, some)
    if typing.get_origin(hint) is tuple:
        parts = [part.strip() for part in text.split(",")] if text.strip() else []
        return tuple(convert(part, scalar(hint)) for part in parts)
    if hint is not bool:
        return hint(text)
    words = {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False}
    if text.lower() not in words:
        raise ValueError(text)
    return words[text.lower()]
