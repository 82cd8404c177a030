"""Whether what an attack returned is an answer; if not, the error names the attack's place and what is allowed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from torch import Tensor

from fedarena.core.errors import UnusableAnswer, type_of
from fedarena.core.tensors import Tensors, is_plain, kind_of

Contents = Mapping[str, Sequence[int | None]]
"""Field of an answer → the shape of its tensor; None: any length."""


def accepted(answer: Any, one: type[Any], count: int | None, contents: Contents, place: str) -> Any:
    """The answer, with plain tensors in place of those that know how they were computed.

    Args:
        one: its class. count: a list of so many is wanted; None: no list.
        contents: what its tensors are. place: where it was returned.

    Raises:
        UnusableAnswer: it is none.
    """
    shapes = ", ".join(f"{name} a tensor {_shape(shape)}" for name, shape in contents.items())
    allowed = (one.__name__ if count is None else f"a list of {count} {one.__name__}") + (shapes and f" with {shapes}")
    parts = [answer] if count is None else list(answer) if isinstance(answer, list | tuple) else None
    if parts is None or any(not isinstance(part, one) for part in parts) or count not in (None, len(parts)):
        told = type_of(answer)
        if parts is not None and count is not None:
            told = f"a list of {len(parts)} ({', '.join(dict.fromkeys(map(type_of, parts)))})"
        raise UnusableAnswer(f"{place} returned {told}, allowed: {allowed}")
    for part in parts:
        for name, shape in contents.items():
            value = getattr(part, name)
            if not is_plain(value) or not _fits(value, shape):
                raise UnusableAnswer(f"{place} returned {kind_of(value)} as {name}, allowed: {allowed}")
    plain = [_plain(part) for part in parts]
    return plain[0] if count is None else plain


def require_same_shapes(values: Tensors, like: Tensors, place: str) -> None:
    """Raise UnusableAnswer unless the values have the names and shapes of others."""
    returned, wanted = ({name: list(t.shape) for name, t in tensors.items()} for tensors in (values, like))
    if returned != wanted:
        raise UnusableAnswer(f"{place} returned {returned}, allowed: {wanted}")


def _fits(value: Tensor, shape: Sequence[int | None]) -> bool:
    return value.dim() == len(shape) and all(
        wanted in (None, size) for wanted, size in zip(shape, value.shape, strict=True)
    )


def _shape(shape: Sequence[int | None]) -> str:
    return f"[{', '.join('n' if size is None else str(size) for size in shape)}]"


def _plain(part: Any) -> Any:
    values: dict[str, Any] = {f.name: getattr(part, f.name) for f in fields(part)}
    changed = {name: _detached(value) for name, value in values.items() if isinstance(value, Tensor | Mapping)}
    return replace(part, **changed)


def _detached(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _detached(one) for name, one in value.items()}
    return value.detach() if isinstance(value, Tensor) else value
