"""Whether what an attack returned is an answer; if not, the error names the attack's place and what is allowed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from numbers import Real
from typing import Any, get_type_hints

import numpy as np
from torch import Tensor

from fedarena.core.errors import UnusableAnswer, type_of
from fedarena.core.tensors import Tensors, is_plain, kind_of, shapes_of

Contents = Mapping[str, Sequence[int | None]]
"""Field of an answer → the shape of its tensor; None: any length."""


def accepted(answer: Any, one: type[Any], wanted: Contents | Sequence[Contents], place: str) -> Any:
    """The answer, with plain tensors in place of those that know how they were computed.

    Args:
        one: its class. place: where it was returned.
        wanted: what its tensors are; of an answer that is a list, for each of its parts.

    Raises:
        UnusableAnswer: it is none.
    """
    single = isinstance(wanted, Mapping)
    contents: list[Contents] = [wanted] if isinstance(wanted, Mapping) else list(wanted)
    called = one.__name__ if single else f"a list of {len(contents)} {one.__name__}"
    parts = [answer] if single else list(answer) if isinstance(answer, list | tuple) else None
    if parts is None or any(not isinstance(part, one) for part in parts) or len(parts) != len(contents):
        told = type_of(answer)
        if parts is not None and not single:
            kinds = ", ".join(dict.fromkeys(map(type_of, parts)))
            told = f"a list of {len(parts)}" + (kinds and f" ({kinds})")
        raise UnusableAnswer(f"{place} returned {told}, allowed: {called}{_with(contents[0] if contents else {})}")
    for part, content in zip(parts, contents, strict=True):
        for name, shape in content.items():
            value = getattr(part, name)
            if not is_plain(value) or not _fits(value, shape):
                raise UnusableAnswer(f"{place} returned {kind_of(value)} as {name}, allowed: {called}{_with(content)}")
        _require_types(part, content, place)
    plain = [_plain(part) for part in parts]
    return plain[0] if single else plain


def _require_types(part: Any, content: Contents, place: str) -> None:
    """Raise UnusableAnswer where a field of an answer, other than these tensors, is of another type than declared."""
    for name, hint in get_type_hints(type(part)).items():
        value = getattr(part, name)
        if hint == Tensors:
            fits, may = isinstance(value, Mapping) and all(map(is_plain, value.values())), "tensors by name"
        else:
            numeric = isinstance(value, Real | np.bool_) or (is_plain(value) and value.numel() == 1)
            fits, may = numeric or (value is None and hint == float | None), "a number"
        if name not in content and not fits:
            raise UnusableAnswer(f"{place} returned {kind_of(value)} as {name}, allowed: {may}")


def _with(content: Contents) -> str:
    shapes = ", ".join(f"{name} a tensor {_shape(shape)}" for name, shape in content.items())
    return shapes and f" with {shapes}"


def require_same_shapes(values: Tensors, like: Tensors, place: str) -> None:
    """Raise UnusableAnswer unless the values have the names and shapes of others."""
    returned, wanted = shapes_of(values), shapes_of(like)
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
