"""Checks of JSON against types. Each check says in one line what is wrong, and where."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

Check = Callable[[Any, str], None]
"""(value, where) → None, or ValueError; `where` is empty for the file as a whole."""

WHOLE = re.compile("0|-?[1-9][0-9]{0,17}")
"""A whole number as the name of a field, such as a seed. Each number has one name only."""


def anything(value: Any, where: str) -> None:
    """Any value."""


def text(value: Any, where: str) -> None:
    """A text."""
    _demand(isinstance(value, str), value, where, "a text")


def flag(value: Any, where: str) -> None:
    """True or false."""
    _demand(isinstance(value, bool), value, where, "true or false")


def whole(value: Any, where: str) -> None:
    """A whole number."""
    _demand(type(value) is int, value, where, "a whole number")


def number(value: Any, where: str) -> None:
    """A finite number."""
    _demand(_finite(value), value, where, "a number")


def amount(value: Any, where: str) -> None:
    """A number that is not negative."""
    _demand(_finite(value) and value >= 0, value, where, "a number from 0 on")


def share(value: Any, where: str) -> None:
    """A number in [0, 1], as every score is."""
    _demand(_finite(value) and 0 <= value <= 1, value, where, "a number in [0, 1]")


def point(value: Any, where: str) -> None:
    """[x, y], and any values after them."""
    correct = isinstance(value, list) and len(value) >= 2 and all(map(_finite, value[:2]))
    _demand(correct, value, where, "a list of two numbers")


def pair(value: Any, where: str) -> None:
    """[x, y]."""
    point(value, where)
    _demand(len(value) == 2, value, where, "a list of two numbers")


def seed_number(value: Any, where: str) -> None:
    """A seed, which is a name in tables by seed, too."""
    whole(value, where)
    _demand(WHOLE.fullmatch(str(value)) is not None, value, where, "a whole number of at most 18 digits")


def either(*allowed: str) -> Check:
    """One of the texts that are given."""

    def check(value: Any, where: str) -> None:
        if not isinstance(value, str) or value not in allowed:
            raise ValueError(f"{where} is {brief(value)}, allowed: {', '.join(name or 'nothing' for name in allowed)}")

    return check


def perhaps(check: Check) -> Check:
    """Null, or a value that passes the check."""
    return lambda value, where: None if value is None else check(value, where)


def both(first: Check, second: Check) -> Check:
    """A value that passes both checks."""

    def check(value: Any, where: str) -> None:
        first(value, where)
        second(value, where)

    return check


def each(check: Check) -> Check:
    """A list of values that pass the check."""

    def all_of(value: Any, where: str) -> None:
        _demand(isinstance(value, list), value, where, "a list")
        for i, one in enumerate(value):
            check(one, f"{where}[{i}]")

    return all_of


def named(check: Check) -> Check:
    """A table with fields of any name, whose values pass the check."""

    def all_of(value: Any, where: str) -> None:
        _demand(isinstance(value, Mapping), value, where, "a table")
        for name, one in value.items():
            check(one, _within(where, name))

    return all_of


def by_seed(check: Check) -> Check:
    """A table with seeds as names, whose values pass the check."""
    each_one = named(check)

    def all_of(value: Any, where: str) -> None:
        each_one(value, where)
        if odd := [name for name in value if not WHOLE.fullmatch(name)]:
            raise ValueError(f"{where} is of seed {brief(odd[0])}, which is no whole number")

    return all_of


def fields(needed: Mapping[str, Check], more: Mapping[str, Check] | None = None, closed: bool = False) -> Check:
    """A table with these fields.

    Args:
        needed: fields that it must have.
        more: fields that it may have.
        closed: whether it may have no other field.
    """
    known = {**needed, **(more or {})}

    def check(value: Any, where: str) -> None:
        _demand(isinstance(value, Mapping), value, where, "a table")
        for name in needed:
            if name not in value:
                raise ValueError(f"{_called(where)} has no {name}")
        for name, one in value.items():
            if name in known:
                known[name](one, _within(where, name))
            elif closed:
                raise ValueError(f"{_called(where)} has {brief(name)}, which is not a known field")

    return check


def brief(value: Any) -> str:
    """A value as its file has it, cut to 40 characters."""
    if isinstance(value, Mapping | list):
        return "a table" if isinstance(value, Mapping) else "a list"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else f"{text[:40]}…"


def _demand(correct: bool, value: Any, where: str, what: str) -> None:
    if not correct:
        raise ValueError(f"{_called(where)} is {brief(value)}, which is not {what}")


def _finite(value: Any) -> bool:
    # True and false are whole numbers to Python, and a whole number may be beyond what a float holds.
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _within(where: str, name: str) -> str:
    """The place of a field of a table. A place in words, such as "cell 3: ", ends with ": "."""
    return name if not where else f"{where}{name}" if where.endswith(": ") else f"{where}.{name}"


def _called(where: str) -> str:
    return where.removesuffix(": ") or "it"


MAY_LACK = "may lack"
"""Stands in `Annotated` of a field of a TypedDict that a file may lack."""

PLAIN: dict[Any, Check] = {str: text, bool: flag, int: whole, float: number, Any: anything}


def check_of(kind: Any) -> Check:
    """The check of a type: of a TypedDict, list, dict by names, Literal, optional or plain type of JSON.

    A check in `Annotated[…, check]` takes the place of the type's own. A file must have all fields of a TypedDict, even
    those that are `NotRequired`, but for those with `MAY_LACK`. All fields of one that is made with `total=False` may
    be missing.

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
        hints = get_type_hints(value, include_extras=True)
        may_lack = [name for name, hint in hints.items() if not value.__total__ or MAY_LACK in parts_of(hint)[1]]
        of_fields = {name: check_of(hint) for name, hint in hints.items()}
        needed = {name: check for name, check in of_fields.items() if name not in may_lack}
        return fields(needed, {name: of_fields[name] for name in may_lack})
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
    """A type without `Annotated` and `NotRequired`, and the metadata of its `Annotated`, outermost first."""
    notes: list[Any] = []
    while get_origin(kind) in (Annotated, NotRequired):
        notes += getattr(kind, "__metadata__", ())
        kind = get_args(kind)[0]
    return kind, notes
