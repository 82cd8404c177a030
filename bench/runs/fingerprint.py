"""A number for an object of a user's session, which another object of the same name does not have.

Records are named by what determines them. A method of a package has a version for its code. A class, a function or a
module of a session has none, and may change under its name. So its code and its structure stand in for the version,
with what they refer to in the session: helpers, global and enclosed variables, arguments and attributes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

OTHERS = {"builtins", "abc", "typing", "torch", "numpy", "fedarena"}
"""Packages whose classes and functions have a version of their own."""
PLAIN = vars(nn.Module()).keys()
"""What every module has: its parameters and parts, which are described apart, and hooks."""
BYTES = 6
"""Of the hash, so that readers of JSON keep the number exactly."""


def fingerprint(given: Any) -> int:
    """The number, at least 1, of a class, a function or a module. The values of a module's parameters do not count."""
    digest = hashlib.sha256()
    for line in _described(given, {}):
        digest.update(line if isinstance(line, bytes) else line.encode())
    return 1 + int.from_bytes(digest.digest()[:BYTES], "little")


def _described(given: Any, seen: dict[int, Any]) -> Iterator[str | bytes]:
    """Lines that are the same, in every process, for objects that do the same.

    Args:
        seen: what has been described, by its id: parts may be shared, and a method refers to its class, which holds it.
    """
    if isinstance(given, bytes):
        yield given
    elif given is None or isinstance(given, bool | int | float | complex | str):
        yield f"{given!r}\n"
    elif id(given) not in seen:
        seen[id(given)] = given
        kind = next((kind for kind in PARTS if isinstance(given, kind)), object)
        yield f"{kind.__name__}\n"
        for part in PARTS[kind](given):
            yield from _described(part, seen)


def _has_a_version(given: Any) -> bool:
    return str(getattr(given, "__module__", "")).partition(".")[0] in OTHERS


def _shown(given: Any) -> str:
    """The text of an object, without its address."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(given))


def _tensor(given: Tensor) -> Iterator[Any]:
    yield f"{given.dtype} {list(given.shape)}"
    if not given.is_meta:
        dense = given.detach().to_dense() if given.layout != torch.strided else given.detach()
        yield dense.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def _module(given: nn.Module) -> Iterator[Any]:
    yield _shown(given)
    for name, p in given.named_parameters():
        yield f"{name} {'lazy' if is_lazy(p) else list(p.shape)} {p.requires_grad}"
    yield dict(given.named_buffers())
    for part in given.modules():
        if not _has_a_version(type(part)):
            yield type(part)
            yield {name: value for name, value in vars(part).items() if name not in PLAIN}


def _class(given: type) -> Iterator[Any]:
    for one in given.__mro__:
        yield one.__qualname__
        if not _has_a_version(one):
            # What Python adds, such as the module's name, says nothing about what the class does.
            yield {name: part for name, part in vars(one).items() if callable(part) or not name.startswith("__")}


def _function(given: FunctionType) -> Iterator[Any]:
    if _has_a_version(given):
        yield f"{given.__module__}.{given.__qualname__}"
        return
    yield from (given.__code__, given.__defaults__, given.__kwdefaults__)
    yield from (cell.cell_contents for cell in given.__closure__ or ())
    yield {name: given.__globals__[name] for name in _names(given.__code__) if name in given.__globals__}


def _names(code: CodeType) -> set[str]:
    """The global names that code may refer to, those of functions inside it among them."""
    inside = [_names(part) for part in code.co_consts if isinstance(part, CodeType)]
    return {*code.co_names}.union(*inside)


def _other(given: Any) -> Iterator[Any]:
    """An object of another kind: by its text where it has one, else by its class and its attributes."""
    yield type(given).__qualname__
    address: Any = object.__repr__
    if type(given).__repr__ is not address:
        yield _shown(given)
    else:
        yield from (type(given), getattr(given, "__dict__", {}))


PARTS: Mapping[type, Callable[[Any], Any]] = {
    Tensor: _tensor,
    np.ndarray: lambda a: (str(a.dtype), list(a.shape), np.ascontiguousarray(a).tobytes() if a.dtype != object else ""),
    nn.Module: _module,
    ModuleType: lambda module: (module.__name__,),
    type: _class,
    FunctionType: _function,
    BuiltinFunctionType: lambda function: (function.__name__,),
    CodeType: lambda code: (code.co_code, code.co_names, code.co_varnames, code.co_consts),
    MethodType: lambda method: (method.__func__, method.__self__),
    staticmethod: lambda method: (method.__func__,),
    classmethod: lambda method: (method.__func__,),
    property: lambda given: (given.fget, given.fset),
    partial: lambda given: (given.func, given.args, given.keywords),
    dict: lambda given: [part for name in sorted(given, key=_shown) for part in (_shown(name), given[name])],
    list: lambda given: (len(given), *given),
    tuple: lambda given: (len(given), *given),
    set: lambda given: sorted(map(_shown, given)),
    frozenset: lambda given: sorted(map(_shown, given)),
    object: _other,
}
"""Kind of object → what makes one up. The first kind that fits counts."""
