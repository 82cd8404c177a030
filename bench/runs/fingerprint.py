"""A number for an object of a user's session, which another object of the same name does not have.

Records are named by what determines them. A method of a package has a version for its code. A class, a function or a
module of a session has none, and may change under its name. So its code and its structure stand in for the version.
What they refer to outside themselves, such as a global variable, is not looked at.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any

from torch import Tensor, nn

OTHERS = {"builtins", "abc", "typing", "torch", "numpy", "fedarena"}
"""Packages whose classes have a version of their own."""
PLAIN = vars(nn.Module()).keys()
"""What every module has: its parameters and parts, which are described apart, and hooks."""
BYTES = 6
"""Of the hash, so that readers of JSON keep the number exactly."""


def fingerprint(given: Any) -> int:
    """The number, at least 1, of a class, a function or a module. The values of a module's parameters do not count."""
    digest = hashlib.sha256("\n".join(_described(given, set())).encode()).digest()
    return 1 + int.from_bytes(digest[:BYTES], "little")


def _described(given: Any, seen: set[int]) -> Iterator[str]:
    """Lines that are the same, in every process, for objects that do the same.

    Args:
        seen: what is being described already: a method refers to its class, which holds it.
    """
    if given is None or isinstance(given, bool | int | float | complex | str | bytes):
        yield repr(given)
    elif id(given) not in seen:
        kind = next((kind for kind in PARTS if isinstance(given, kind)), object)
        yield kind.__name__
        for part in PARTS[kind](given):
            yield from _described(part, {*seen, id(given)})


def _module(given: nn.Module) -> Iterator[Any]:
    yield repr(given)
    yield from (f"{name} {list(p.shape)} {p.requires_grad}" for name, p in given.named_parameters())
    yield dict(given.named_buffers())
    for part in given.modules():
        yield type(part)
        yield {name: value for name, value in vars(part).items() if name not in PLAIN}


def _class(given: type) -> Iterator[Any]:
    for one in given.__mro__:
        yield one.__qualname__
        if one.__module__.partition(".")[0] not in OTHERS:
            # What Python adds, such as the module's name, says nothing about what the class does.
            yield {name: part for name, part in vars(one).items() if callable(part) or not name.startswith("__")}


def _function(given: FunctionType) -> Iterator[Any]:
    yield from (given.__code__, given.__defaults__, given.__kwdefaults__)
    yield from (cell.cell_contents for cell in given.__closure__ or ())


PARTS: Mapping[type, Callable[[Any], Any]] = {
    Tensor: lambda t: (str(t.dtype), list(t.shape), t.detach().cpu().numpy().tobytes()),
    nn.Module: _module,
    type: _class,
    FunctionType: _function,
    CodeType: lambda code: (code.co_code, code.co_names, code.co_varnames, code.co_consts),
    MethodType: lambda method: (method.__func__, method.__self__),
    staticmethod: lambda method: (method.__func__,),
    classmethod: lambda method: (method.__func__,),
    partial: lambda given: (given.func, given.args, given.keywords),
    dict: lambda given: [part for name in sorted(given, key=str) for part in (str(name), given[name])],
    list: list,
    tuple: list,
    set: lambda given: sorted(map(repr, given)),
    frozenset: lambda given: sorted(map(repr, given)),
    object: lambda given: (type(given), getattr(given, "__dict__", {})),
}
"""Kind of object → what makes one up. The first kind that fits counts."""
