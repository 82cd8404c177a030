"""A number for an object of a user's session, which another object of the same name does not have.

Records are named by what determines them. A method of a package has a version for its code. A class, a function or a
module of a session has none, and may change under its name. So its code and its structure stand in for the version,
with what they refer to in the session: helpers, global and enclosed variables, arguments and attributes.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from inspect import getattr_static
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.utils.hooks import RemovableHandle

from fedarena.core.errors import UserError, type_of

OWN_RELEASE = {"fedarena", "numpy", "torch", *sys.stdlib_module_names}
"""Packages that are never looked into."""
INSTALLED = re.compile(r"[\\/](site|dist)-packages[\\/]")
"""Where other packages lie that have a release."""
PLAIN = vars(nn.Module()).keys() - {"training"}
"""What every module has: its parameters and parts, which are described apart, and hooks."""
HOOKS = [name for name in PLAIN if name.endswith("_hooks")]
BYTES = 6
"""Of the hash, so that readers of JSON keep the number exactly."""


def fingerprint(given: Any) -> int:
    """The number, at least 1, of a class, a function or a module. The values of a module's parameters do not count.

    Raises:
        UserError: objects that are nested too deeply.
    """
    package = _package(given if hasattr(given, "__module__") else type(given))
    try:
        return 1 + int.from_bytes(_Walk(package).digest(given)[:BYTES], "little")
    except RecursionError:
        raise UserError(f"{type_of(given)} holds objects that are nested too deeply to be told from others") from None


class _Walk:
    """One walk through an object and all that it refers to.

    Args:
        package: that the object is of, which is looked into though it be installed.
    """

    def __init__(self, package: str) -> None:
        self._package = package
        self._known: dict[int, tuple[Any, bytes]] = {}

    def digest(self, given: Any) -> bytes:
        """A hash that is the same, in every process, for objects that do the same.

        Each object is described once, since parts may be shared. Inside itself it is a mark.
        """
        if isinstance(given, bytes):
            return hashlib.sha256(given).digest()
        if given is None or isinstance(given, bool | int | float | complex | str):
            return hashlib.sha256(repr(given).encode()).digest()
        if id(given) not in self._known:
            self._known[id(given)] = given, b"itself"
            kind = next((kind for kind in PARTS if isinstance(given, kind)), object)
            whole = hashlib.sha256(kind.__name__.encode())
            for part in PARTS[kind](given, self):
                whole.update(self.digest(part))
            self._known[id(given)] = given, whole.digest()
        return self._known[id(given)][1]

    def released(self, given: Any) -> bool:
        """Whether a class, a function or a module is one of a package that has a release, and so a version."""
        package = _package(given)
        if package in OWN_RELEASE:
            return True
        place = getattr(sys.modules.get(package), "__file__", None) or ""
        return package != self._package and INSTALLED.search(place) is not None


def _package(given: Any) -> str:
    name = given.__name__ if isinstance(given, ModuleType) else getattr(given, "__module__", None)
    return str(name or "builtins").partition(".")[0]


def _tensor(given: Tensor, walk: _Walk) -> Iterator[Any]:
    if given.is_nested:
        yield list(given.unbind())
        return
    yield f"{given.dtype} {list(given.shape)}"
    if not given.is_meta:
        dense = given.detach().to_dense() if given.layout != torch.strided else given.detach()
        yield dense.resolve_conj().resolve_neg().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def _array(given: np.ndarray[Any, Any], walk: _Walk) -> Iterator[Any]:
    yield f"{given.dtype} {list(given.shape)}"
    yield given.tolist() if given.dtype.hasobject else np.ascontiguousarray(given).tobytes()


def _module(given: nn.Module, walk: _Walk) -> Iterator[Any]:
    for name, p in given.named_parameters():
        yield f"{name} {'lazy' if is_lazy(p) else list(p.shape)} {p.requires_grad}"
    yield dict(given.named_buffers())
    for name, part in given.named_modules(remove_duplicate=False):
        yield from (name, type(part))
        yield {name: value for name, value in vars(part).items() if name not in PLAIN}
        yield [list(hooks.values()) for name in HOOKS if (hooks := vars(part).get(name))]


def _class(given: type, walk: _Walk) -> Iterator[Any]:
    for one in given.__mro__:
        yield one.__qualname__
        if walk.released(one):
            yield one.__module__
        else:
            # What Python adds, such as the module's name, says nothing about what the class does.
            yield {name: part for name, part in vars(one).items() if callable(part) or not name.startswith("__")}
    if not walk.released(type(given)):
        yield type(given)


def _function(given: FunctionType, walk: _Walk) -> Iterator[Any]:
    if walk.released(given):
        yield f"{given.__module__}.{given.__qualname__}"
        return
    yield from (given.__code__, given.__defaults__, given.__kwdefaults__)
    yield from (cell.cell_contents for cell in given.__closure__ or () if _is_filled(cell))
    names = _names(given.__code__)
    yield vars(given)
    for name in sorted(names & given.__globals__.keys()):
        value = given.__globals__[name]
        yield from (name, value)
        if isinstance(value, ModuleType) and not walk.released(value):
            yield from _used(value, names, walk)


def _used(module: ModuleType, names: set[str], walk: _Walk) -> Iterator[Any]:
    """What of a module of the user's own is named, and of modules inside it."""
    for name in sorted(names & vars(module).keys()):
        value = vars(module)[name]
        yield from (name, value)
        if isinstance(value, ModuleType) and not walk.released(value):
            yield from _used(value, names - {name}, walk)


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:  # a name that has no value yet
        return False
    return True


def _names(code: CodeType) -> set[str]:
    """The global names and attributes that code refers to, those of functions inside it among them."""
    inside = [_names(part) for part in code.co_consts if isinstance(part, CodeType)]
    return {*code.co_names}.union(*inside)


def _unordered(given: Any, walk: _Walk) -> list[bytes]:
    return sorted(map(walk.digest, given))


def _other(given: Any, walk: _Walk) -> Iterator[Any]:
    """An object of another kind: as pickle would save it, else by its text without an address; and its attributes."""
    yield type(given)
    try:
        saved = given.__reduce_ex__(2)
    except Exception:  # what cannot be pickled may raise anything
        saved = _text(given)
    for part in (saved,) if isinstance(saved, str) else saved:  # attributes, and iterators of what it holds
        yield list(part) if isinstance(part, Iterator) else part
    yield getattr_static(given, "__wrapped__", None)  # a user's `__getattr__` may raise anything
    if not walk.released(type(given)):
        yield object.__getattribute__(given, "__dict__") if type(given).__dictoffset__ else None


def _text(given: Any) -> str:
    try:
        return re.sub(r" at 0x[0-9a-f]+", "", repr(given))
    except Exception:  # a user's may raise anything
        return ""


PARTS: Mapping[type, Callable[[Any, _Walk], Any]] = {
    Tensor: _tensor,
    np.ma.MaskedArray: lambda array, walk: (array.filled(0), np.ma.getmaskarray(array)),
    np.ndarray: _array,
    memoryview: lambda view, walk: (view.tobytes(),),
    nn.Module: _module,
    ModuleType: lambda module, walk: (module.__name__,) if walk.released(module) else (),
    type: _class,
    FunctionType: _function,
    BuiltinFunctionType: lambda function, walk: (function.__name__,),
    CodeType: lambda code, walk: (code.co_code, code.co_names, code.co_varnames, code.co_consts),
    MethodType: lambda method, walk: (method.__func__, method.__self__),
    staticmethod: lambda method, walk: (method.__func__,),
    classmethod: lambda method, walk: (method.__func__,),
    property: lambda given, walk: (given.fget, given.fset),
    partial: lambda given, walk: (given.func, given.args, given.keywords),
    torch.Generator: lambda given, walk: (given.get_state(),),
    RemovableHandle: lambda given, walk: (),  # its number counts the hooks of this process
    dict: lambda given, walk: [part for pair in given.items() for part in pair],
    list: lambda given, walk: (len(given), *given),
    tuple: lambda given, walk: (len(given), *given),
    set: _unordered,
    frozenset: _unordered,
    object: _other,
}
"""Kind of object → what makes one up. The first kind that fits counts."""
