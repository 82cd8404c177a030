"""Checks that follow from types: a TypedDict says what a JSON object must hold."""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

from fedarena.records.json_schema import (
    Check,
    anything,
    each,
    either,
    fields,
    flag,
    named,
    number,
    perhaps,
    text,
    whole,
)

PLAIN: dict[Any, Check] = {str: text, bool: flag, int: whole, float: number, Any: anything}


def check_of(kind: Any) -> Check:
    """The check of a type: of a TypedDict, list, dict by names, Literal, optional or plain type of JSON.

    A check in `Annotated[…, check]` takes the place of the type's own. A file must have all fields of a TypedDict, even
    those that are `NotRequired`; all fields of one that is made with `total=False` may be missing.

    Raises:
        TypeError: no check is known for the type.
    """
    value, notes = parts_of(kind)
    for note in notes:
        if callable(note):
            check: Check = note
            return check
    if value in PLAIN:
        return PLAIN[value]
    if is_typeddict(value):
        of_fields = {name: check_of(hint) for name, hint in get_type_hints(value, include_extras=True).items()}
        return fields(of_fields) if value.__total__ else fields({}, of_fields)
    origin, inner = get_origin(value), get_args(value)
    if origin is Literal:
        return either(*inner)
    if origin is list:
        return each(check_of(inner[0]))
    if origin is dict:
        return named(check_of(inner[1]))
    if origin in (Union, UnionType) and len(inner) == 2 and NoneType in inner:
        return perhaps(check_of(next(one for one in inner if one is not NoneType)))
    raise TypeError(f"no check is known for {kind}")


def parts_of(kind: Any) -> tuple[Any, list[Any]]:
    """A type without `Annotated` and `NotRequired`, and what stands beside it in `Annotated`, outermost first."""
    notes: list[Any] = []
    while get_origin(kind) in (Annotated, NotRequired):
        notes += getattr(kind, "__metadata__", ())
        kind = get_args(kind)[0]
    return kind, notes
