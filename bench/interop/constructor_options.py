"""The options of another library's class, read off the signature of its constructor."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Collection
from dataclasses import field, fields, make_dataclass
from typing import Any

from fedarena.core import registry
from fedarena.core.card import Kind
from fedarena.core.errors import UserError
from fedarena.core.options import is_a, option, scalar

SCALARS = (int, float, str, bool)


def options_class(source: type[Any], kind: Kind, name: str, left_out: Collection[str]) -> type[Any]:
    """A class of options with one option for each parameter that can be given as text.

    Parameters of other types keep their defaults. A parameter without a default becomes an option whose default is
    none, and `chosen` refuses that value.

    Args:
        source: the class.
        kind, name: of the method that it becomes.
        left_out: parameters that are no options.

    Raises:
        UserError: a parameter without a default cannot be given as text.
    """

    def reduce(self: Any) -> Any:
        return registry.options_of, (kind, name, {f.name: getattr(self, f.name) for f in fields(self)})

    hints = typing.get_type_hints(source.__init__)
    made = []
    for parameter in inspect.signature(source).parameters.values():
        named = parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        if named and parameter.name not in left_out:
            made += _field(parameter, hints.get(parameter.name), source, name)
    cls = make_dataclass("Options", made, frozen=True, namespace={"__reduce__": reduce})
    cls.__doc__ = f"The options of {name}."
    return cls


def chosen(options: Any, name: str) -> dict[str, Any]:
    """The arguments of the constructor that the options give. Raises UserError for one that is missing."""
    values = {f.name: getattr(options, f.name) for f in fields(options)}
    for parameter, value in values.items():
        if value is None and options.__dataclass_fields__[parameter].metadata["needed"]:
            raise UserError(f"{name}: option '{parameter}' is none, allowed: a value, since there is no default")
    return values


def parameters_of(source: type[Any]) -> frozenset[str]:
    """The names of a constructor's parameters."""
    return frozenset(inspect.signature(source).parameters)


def _field(parameter: inspect.Parameter, hint: Any, source: type[Any], name: str) -> list[tuple[str, Any, Any]]:
    """(name, type, field) of the option for a parameter, or nothing where it cannot be given as text."""
    needed = parameter.default is parameter.empty
    hint = type(parameter.default) if hint is None and not needed else hint
    if hint is None or scalar(hint) not in SCALARS:
        if needed:
            raise UserError(f"{name} needs '{parameter.name}', which is an object and cannot be given as text")
        return []
    default = None if needed else parameter.default
    if hint is float and type(default) is int:
        default = float(default)
    if not needed and not is_a(default, hint):
        return []
    declared = option(default, _meaning(source, parameter.name))
    metadata = dict(declared.metadata) | {"needed": needed}
    return [(parameter.name, hint | None if needed else hint, field(default=default, metadata=metadata))]


def _meaning(source: type[Any], parameter: str) -> str:
    """The first sentence about a parameter in the docstring of the class, as far as its first line goes."""
    lines = re.search(rf"^\s*{parameter} : .*\n\s*(\S.*)$", inspect.getdoc(source) or "", re.MULTILINE)
    return lines[1].split(". ")[0].strip() if lines else f"{parameter} of {source.__name__}'s constructor"
