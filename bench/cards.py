"""Method cards and their options: what `bench list` and `bench show` print.

A card is light: it imports neither torch nor scikit-learn, so that listing a hundred methods stays
instant. The implementation is named by `target` ("package.module:attribute") and imported on use.

Options of a method are the fields of a frozen dataclass made with `option`, so that one declaration
gives the type, the default, the allowed range, the help text and typed access:

    @dataclass(frozen=True)
    class Options:
        ratio: float = option(0.5, "sketch size s as a share of d_in", above=0, high=1)

    CARD = Card(name="dbcl", kind="defense", target="fedarena.defenses.dbcl:DBCL", options=Options, ...)
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Literal

from fedarena.errors import UserError

Kind = Literal["defense", "attack", "dataset", "model", "partition"]
KINDS: tuple[Kind, ...] = ("defense", "attack", "dataset", "model", "partition")


@dataclass(frozen=True)
class NoOptions:
    """The options of a method that has none."""


@dataclass(frozen=True)
class Card:
    """What a method is, where it comes from, and what it departs from.

    Attributes:
        name: registry name, lower case with hyphens.
        kind: one of `KINDS`.
        title: one line for tables.
        target: the implementation, as "module:attribute" (imported on first use) or the object itself.
        options: frozen dataclass whose fields were made with `option`.
        version: raised whenever behaviour changes; part of every record's key.
        paper: title of the source.
        authors, year, url: the rest of the citation.
        equations: which equations or algorithms of the paper are implemented.
        departures: where this implementation differs from its paper, and why.
        check: one number of the paper, and the test or command that compares it with ours.
        facts: any further lines (who sees what, shapes, licences), as (label, text).
    """

    name: str
    kind: Kind
    title: str
    target: str | Any
    options: type[Any] = NoOptions
    version: int = 1
    paper: str = ""
    authors: str = ""
    year: int | None = None
    url: str = ""
    equations: str = ""
    departures: tuple[str, ...] = ()
    check: str = ""
    facts: tuple[tuple[str, str], ...] = field(default=())

    def load(self) -> Any:
        """Import and return the implementation."""
        if not isinstance(self.target, str):
            return self.target
        module, _, attribute = self.target.partition(":")
        return getattr(import_module(module), attribute)

    def parse(self, given: Mapping[str, str]) -> Any:
        """Options from text, as on the command line; see `parse_options`."""
        return parse_options(self.options, given, f"{self.kind} {self.name}")


def option(
    default: Any,
    help: str,
    *,
    low: float | None = None,
    high: float | None = None,
    above: float | None = None,
    below: float | None = None,
    choices: Sequence[Any] | None = None,
) -> Any:
    """A dataclass field with a help text and an allowed range (`low <=`, `above <`, `<= high`, `< below`)."""
    metadata = {"help": help, "low": low, "high": high, "above": above, "below": below, "choices": choices}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class OptionInfo:
    """One row of `bench show`."""

    name: str
    type: str
    default: Any
    allowed: str
    help: str


def describe_options(options: type[Any]) -> list[OptionInfo]:
    """Name, type, default, allowed values and meaning of every option."""
    hints = typing.get_type_hints(options)

    def info(f: dataclasses.Field[Any]) -> OptionInfo:
        hint = hints[f.name]
        return OptionInfo(f.name, _type_name(hint), f.default, _allowed(hint, f.metadata), f.metadata["help"])

    return [info(f) for f in dataclasses.fields(options)]


def parse_options(options: type[Any], given: Mapping[str, str], owner: str) -> Any:
    """Build an options object from text values.

    Raises:
        UserError: an option that does not exist, does not parse, or lies outside its range.
    """
    hints = typing.get_type_hints(options)
    fields = {f.name: f for f in dataclasses.fields(options)}
    values: dict[str, Any] = {}
    for name, text in given.items():
        key = name.replace("-", "_")
        if key not in fields:
            raise UserError(f"{owner} has no option '{name}'{did_you_mean(key, fields)}")
        values[key] = _convert(text, hints[key], f"{owner}: option '{name}'")
    made = options(**values)
    check_options(made, owner)
    return made


def check_options(made: Any, owner: str) -> None:
    """Hold an options object to its declared ranges. Raises UserError."""
    hints = typing.get_type_hints(type(made))
    for f in dataclasses.fields(made):
        value, meta = getattr(made, f.name), f.metadata
        if value is None:
            continue
        for item in value if isinstance(value, tuple) else (value,):
            if not _within(item, meta):
                allowed = _allowed(hints[f.name], meta)
                raise UserError(f"{owner}: option '{f.name}' is {item!r}, allowed: {allowed}")


def did_you_mean(name: str, known: typing.Iterable[str]) -> str:
    """'; did you mean ...?' with the closest matches, or the whole list when nothing is close."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    if close:
        return f"; did you mean {' or '.join(close)}?"
    return f"; it knows: {', '.join(names)}" if names else "; it has none"


def _within(value: Any, meta: Mapping[str, Any]) -> bool:
    if meta["choices"] is not None and value not in meta["choices"]:
        return False
    if isinstance(value, float) and not math.isfinite(value):
        return False
    bounds = (
        (meta["low"], lambda b: value >= b),
        (meta["above"], lambda b: value > b),
        (meta["high"], lambda b: value <= b),
        (meta["below"], lambda b: value < b),
    )
    return all(bound is None or holds(bound) for bound, holds in bounds)


def _allowed(hint: Any, meta: Mapping[str, Any]) -> str:
    if meta["choices"] is not None:
        return ", ".join(str(c) for c in meta["choices"])
    inner = _inner(hint)
    if inner is bool:
        return "true, false"
    low, above, high, below = (meta[k] for k in ("low", "above", "high", "below"))
    left = f"[{low:g}" if low is not None else f"({above:g}" if above is not None else "(-inf"
    right = f"{high:g}]" if high is not None else f"{below:g})" if below is not None else "inf)"
    if inner in (int, float):
        return f"{_type_name(hint)} in {left}, {right}"
    return _type_name(hint)


def _type_name(hint: Any) -> str:
    if typing.get_origin(hint) is tuple:
        return f"{_type_name(typing.get_args(hint)[0])},..."
    args = typing.get_args(hint)
    if args:
        return " or ".join("none" if a is type(None) else _type_name(a) for a in args)
    words = {int: "integer", float: "number", str: "text", bool: "boolean"}
    return words.get(hint, getattr(hint, "__name__", str(hint)))


def _inner(hint: Any) -> Any:
    """The scalar type of `T`, `T | None` or `tuple[T, ...]`."""
    if typing.get_origin(hint) is tuple:
        return _inner(typing.get_args(hint)[0])
    if isinstance(hint, types.UnionType):
        return _inner(next(a for a in typing.get_args(hint) if a is not type(None)))
    return hint


def _convert(text: str, hint: Any, owner: str) -> Any:
    if isinstance(hint, types.UnionType) and type(None) in typing.get_args(hint) and text.lower() == "none":
        return None
    if isinstance(hint, types.UnionType):
        hint = next(a for a in typing.get_args(hint) if a is not type(None))
    if typing.get_origin(hint) is tuple:
        inner = typing.get_args(hint)[0]
        return tuple(_convert(part.strip(), inner, owner) for part in text.split(",") if part.strip())
    try:
        if hint is bool:
            return {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False}[text.lower()]
        return hint(text)
    except (KeyError, ValueError):
        raise UserError(f"{owner} is '{text}', which is not a {_type_name(hint)}") from None
