"""What a file must hold, as tables of field → check, and what to say of one that holds something else.

A check takes a value and where it stands, and raises ValueError with both in words that a reader of the file knows.
Checks are put together: `fields({"seed": whole, "scores": named(share)})` is a check too.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any

Check = Callable[[Any, str], None]
"""(value, where) → nothing, or ValueError; `where` is empty for the file as a whole."""

WHOLE = re.compile("0|-?[1-9][0-9]{0,17}")
"""A whole number as a name, such as a seed's: each in one way only."""


def anything(value: Any, where: str) -> None:
    """Whatever it is."""


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
    """[x, y], and whatever comes after them."""
    right = isinstance(value, list) and len(value) >= 2 and all(map(_finite, value[:2]))
    _demand(right, value, where, "a list of two numbers")


def pair(value: Any, where: str) -> None:
    """[x, y]."""
    point(value, where)
    _demand(len(value) == 2, value, where, "a list of two numbers")


def either(*allowed: str) -> Check:
    """One of these texts."""

    def check(value: Any, where: str) -> None:
        if not isinstance(value, str) or value not in allowed:
            raise ValueError(f"{where} is {brief(value)}, allowed: {', '.join(name or 'nothing' for name in allowed)}")

    return check


def perhaps(check: Check) -> Check:
    """Null, or what the check asks for."""
    return lambda value, where: None if value is None else check(value, where)


def both(first: Check, second: Check) -> Check:
    """What passes both checks."""

    def check(value: Any, where: str) -> None:
        first(value, where)
        second(value, where)

    return check


def each(check: Check) -> Check:
    """A list of them."""

    def all_of(value: Any, where: str) -> None:
        _demand(isinstance(value, list), value, where, "a list")
        for i, one in enumerate(value):
            check(one, f"{where}[{i}]")

    return all_of


def named(check: Check) -> Check:
    """A table of them, by names of any kind."""

    def all_of(value: Any, where: str) -> None:
        _demand(isinstance(value, Mapping), value, where, "a table")
        for name, one in value.items():
            check(one, _within(where, name))

    return all_of


def by_seed(check: Check) -> Check:
    """A table of them by seed."""
    each_one = named(check)

    def all_of(value: Any, where: str) -> None:
        each_one(value, where)
        if odd := [name for name in value if not WHOLE.fullmatch(name)]:
            raise ValueError(f"{where} is of seed {brief(odd[0])}, which is no whole number")

    return all_of


def fields(needed: Mapping[str, Check], more: Mapping[str, Check] | None = None, closed: bool = False) -> Check:
    """A table with these fields.

    Args:
        more: those that it may have.
        closed: it has no others.
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
                raise ValueError(f"{_called(where)} has {brief(name)}, which nothing is known of")

    return check


def brief(value: Any) -> str:
    """A value as its file has it, cut."""
    if isinstance(value, Mapping | list):
        return "a table" if isinstance(value, Mapping) else "a list"
    told = json.dumps(value, ensure_ascii=False)
    return told if len(told) <= 40 else f"{told[:40]}…"


def _demand(right: bool, value: Any, where: str, what: str) -> None:
    if not right:
        raise ValueError(f"{_called(where)} is {brief(value)}, which is not {what}")


def _finite(value: Any) -> bool:
    # True and false are whole numbers to Python, and a whole number may be beyond what a float holds.
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _within(where: str, name: str) -> str:
    """Where a field of a table stands; a place that is told in words ends with ": "."""
    return name if not where else f"{where}{name}" if where.endswith(": ") else f"{where}.{name}"


def _called(where: str) -> str:
    return where.removesuffix(": ") or "it"
