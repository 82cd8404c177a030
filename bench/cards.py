"""Method cards and their options: what `bench list` and `bench show` print.

A card is light: it imports neither torch nor scikit-learn, so that listing a hundred methods stays
instant. The implementation is named by `target` ("package.module:attribute") and imported on use.

Options of a method are the fields of a frozen dataclass made with `option`, so that one declaration
gives the type, the default, the allowed range, the help text and typed access. Types are `int`, `float`,
`str`, `bool`, and of these `T | None` and `tuple[T, ...]`:

    @dataclass(frozen=True)
    class Options:
        ratio: float = option(0.5, "sketch size s as a share of d_in", above=0, high=1)

    CARD = Card(name="dbcl", kind="defense", target="fedarena.defenses.dbcl:DBCL", options=Options, ...)
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import operator
import re
import types
import typing
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Literal

from fedarena.errors import UserError
from fedarena.threat import EVERYONE, Party

Kind = Literal["defense", "aggregator", "secure", "attack", "dataset", "model", "partition"]
KINDS: tuple[Kind, ...] = ("defense", "aggregator", "secure", "attack", "dataset", "model", "partition")

NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


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
        form: of attacks: `adaptive` when it has read the defense's paper, `paper` otherwise; `both` for those
            that are run in either form.
        usual: the problem that it is run on when nothing else is said, as (flag or schedule option, value): of
            attacks, of protocols that need such a one, and of data sets that do. Later ones of these come first.
        aliases: what else the field calls it, lower case with hyphens: whoever asks for one is told the name.

    Raises:
        ValueError, TypeError: a card that does not keep to this; `bench list` shows its plug-in as broken.
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
    form: Literal["both", "paper", "adaptive"] = "both"
    usual: tuple[tuple[str, str], ...] = ()
    aliases: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind is {self.kind!r}, allowed: {', '.join(KINDS)}")
        if not NAME.fullmatch(self.name):
            raise ValueError(f"name is {self.name!r}, allowed: lower-case words joined by hyphens")
        for alias in self.aliases:
            if not NAME.fullmatch(alias):
                raise ValueError(f"an alias is {alias!r}, allowed: lower-case words joined by hyphens")
        if self.version < 1:
            raise ValueError(f"version is {self.version}, allowed: 1 or more")
        check_declaration(self.options)

    def load(self) -> Any:
        """Import and return the implementation. Raises UserError when it cannot be imported."""
        if not isinstance(self.target, str):
            return self.target
        return import_target(self.target, f"{self.kind} '{self.name}' ({self.target})")

    def parse(self, given: Mapping[str, str]) -> Any:
        """Options from text, as on the command line; see `parse_options`."""
        return parse_options(self.options, given, f"{self.kind} {self.name}")


def import_target(target: str, owner: str) -> Any:
    """Import "module:attribute". Raises UserError, in one line, whatever goes wrong in there."""
    module, _, attribute = target.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except (Exception, SystemExit) as error:  # foreign code may fail in any way while it is imported
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise UserError(f"{owner} cannot be loaded: {why}") from error


def option(
    default: Any,
    help: str,
    *,
    low: float | None = None,
    high: float | None = None,
    above: float | None = None,
    below: float | None = None,
    choices: Sequence[Any] | None = None,
    acts_with: tuple[str, *tuple[Any, ...]] | None = None,
    party: Party | None = None,
) -> Any:
    """A dataclass field with a help text and an allowed range (`low <=`, `above <`, `<= high`, `< below`).

    Args:
        acts_with: another option and the values of it with which alone this one does something; the name alone: any
            value but the other's default. Elsewhere nothing but the default is allowed.
        party: of an attack: the party as which alone it does something. An attack as others alone takes nothing but
            the default.
    """
    metadata = {"help": help, "low": low, "high": high, "above": above, "below": below, "choices": choices}
    return field(default=default, metadata=metadata | {"acts_with": acts_with, "party": party})


def check_declaration(options: type[Any]) -> None:
    """Hold an options class to what command line and records rely on.

    Raises:
        TypeError: not a frozen dataclass, a field not made with `option`, a type that text cannot give, or a
            default of another type (records would tell 1 from 1.0).
        UserError: a default outside its own range.
        ValueError: an option that acts with another one that there is not, or with a value that that one cannot have,
            or for a party that there is not.
    """
    if not getattr(getattr(options, "__dataclass_params__", None), "frozen", False):
        raise TypeError(f"options must be a frozen dataclass, not {options!r}")
    hints = typing.get_type_hints(options)
    for f in dataclasses.fields(options):
        where = f"{options.__qualname__}.{f.name}"
        if "help" not in f.metadata:
            raise TypeError(f"{where} is not made with fedarena.cards.option")
        if _inner(hints[f.name]) not in (int, float, str, bool):
            raise TypeError(
                f"{where} is of type {hints[f.name]}, allowed: int, float, str, bool, T | None, tuple[T, ...]"
            )
        if not _is_a(f.default, hints[f.name]):
            raise TypeError(f"{where} has the default {f.default!r}, which is not of type {_type_name(hints[f.name])}")
        if f.metadata["party"] not in (None, *EVERYONE):
            raise ValueError(f"{where} is for party {f.metadata['party']!r}, allowed: {', '.join(EVERYONE)}")
        if (needs := f.metadata["acts_with"]) is not None:
            other, *values = needs
            if other not in hints or not all(_is_a(value, hints[other]) for value in values):
                raise ValueError(f"{where} acts with {', '.join(map(repr, needs))}, which the class does not have")
    check_options(options(), options.__qualname__)


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

    defaults = {f.name: f.default for f in dataclasses.fields(options)}

    def info(f: dataclasses.Field[Any]) -> OptionInfo:
        hint, meta = hints[f.name], f.metadata
        needs = "" if meta["acts_with"] is None else f" (acts with {_needed(meta['acts_with'], defaults)} alone)"
        who = "" if meta["party"] is None else f" (acts for party {meta['party']} alone)"
        return OptionInfo(f.name, _type_name(hint), f.default, _allowed(hint, meta), meta["help"] + needs + who)

    return [info(f) for f in dataclasses.fields(options)]


def parse_options(options: type[Any], given: Mapping[str, str], owner: str) -> Any:
    """Build an options object from text values.

    Raises:
        UserError: an option that does not exist, does not parse, lies outside its range, or would do nothing.
    """
    hints = typing.get_type_hints(options)
    fields = {f.name: f for f in dataclasses.fields(options)}
    values: dict[str, Any] = {}
    for name, text in given.items():
        key = name.replace("-", "_")
        if key not in fields:
            raise UserError(f"{owner} has no option {name!r}{did_you_mean(key, fields)}")
        if key in values:
            raise UserError(f"{owner}: option '{key}' is given twice, allowed: once")
        try:
            values[key] = _convert(text, hints[key])
        except ValueError:
            allowed = _allowed(hints[key], fields[key].metadata)
            raise UserError(f"{owner}: option '{name}' is {text!r}, allowed: {allowed}") from None
    made = options(**values)
    check_options(made, owner)
    return made


def check_options(made: Any, owner: str) -> None:
    """Hold an options object to its declared ranges, and to options that do something. Raises UserError."""
    hints = typing.get_type_hints(type(made))
    defaults = {f.name: f.default for f in dataclasses.fields(made)}
    for f in dataclasses.fields(made):
        value, meta = getattr(made, f.name), f.metadata
        if value != f.default and meta["acts_with"] is not None:
            _check_acts(made, f.name, meta["acts_with"], defaults, owner)
        if value is None:
            continue
        for item in value if isinstance(value, tuple) else (value,):
            if not _within(item, meta):
                allowed = _allowed(hints[f.name], meta)
                raise UserError(f"{owner}: option '{f.name}' is {value!r}, allowed: {allowed}")


def check_parties(made: Any, owner: str, parties: Collection[Party]) -> None:
    """Hold an attack's options to the parties that it is run as: one that acts for another party alone would do
    nothing. Raises UserError."""
    for f in dataclasses.fields(made):
        value, party = getattr(made, f.name), f.metadata["party"]
        if value != f.default and party is not None and party not in parties:
            raise UserError(
                f"{owner}: option '{f.name}' is {to_text(value)}, allowed with party {', '.join(parties)}: "
                f"{to_text(f.default)}, for it acts for party {party} alone"
            )


def _check_acts(
    made: Any, name: str, needs: tuple[str, *tuple[Any, ...]], defaults: Mapping[str, Any], owner: str
) -> None:
    other, *values = needs
    there = getattr(made, other)
    if there in values if values else there != defaults[other]:
        return
    raise UserError(
        f"{owner}: option '{name}' is {to_text(getattr(made, name))}, allowed with {other}={to_text(there)}: "
        f"{to_text(defaults[name])}, for it does nothing there; it acts with {_needed(needs, defaults)}"
    )


def _needed(needs: tuple[str, *tuple[Any, ...]], defaults: Mapping[str, Any]) -> str:
    """prior=population, or "burn_rounds other than 0"."""
    other, *values = needs
    if values:
        return " or ".join(f"{other}={to_text(value)}" for value in values)
    return f"{other} other than {to_text(defaults[other])}"


def to_text(value: Any) -> str:
    """An option's value as one writes it on the command line; `parse_options` reads it back."""
    if isinstance(value, tuple):
        return ",".join(to_text(item) for item in value)
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return str(value)


def did_you_mean(name: str, known: typing.Iterable[str], aliases: Mapping[str, str] | None = None) -> str:
    """'; did you mean ...?' with the closest matches, or the whole list when nothing is close.

    Args:
        aliases: other names → the known ones; one that is asked for by the letter is the only match.
    """
    names = sorted(set(known))
    if aliases and name.lower() in aliases:
        return f"; did you mean {aliases[name.lower()]}?"
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
        (meta["low"], operator.ge),
        (meta["above"], operator.gt),
        (meta["high"], operator.le),
        (meta["below"], operator.lt),
    )
    return all(bound is None or holds(value, bound) for bound, holds in bounds)


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


def _optional(hint: Any) -> Any | None:
    """T of `T | None` (however it is written), else None."""
    args = typing.get_args(hint)
    if typing.get_origin(hint) in (types.UnionType, typing.Union) and len(args) == 2 and type(None) in args:
        return next(a for a in args if a is not type(None))
    return None


def _inner(hint: Any) -> Any:
    """The scalar type of `T`, `T | None` or `tuple[T, ...]`."""
    if (some := _optional(hint)) is not None:
        return _inner(some)
    if typing.get_origin(hint) is tuple:
        item, *rest = typing.get_args(hint)
        return item if rest == [...] else hint
    return hint


def _is_a(value: Any, hint: Any) -> bool:
    """Whether a value has exactly the declared type: 1 is no float and True no int."""
    if (some := _optional(hint)) is not None:
        return value is None or _is_a(value, some)
    if typing.get_origin(hint) is tuple:
        return type(value) is tuple and all(type(item) is _inner(hint) for item in value)
    return type(value) is hint


def _convert(text: str, hint: Any) -> Any:
    """Raises ValueError where it does not parse."""
    if (some := _optional(hint)) is not None:
        return None if text.strip().lower() == "none" else _convert(text, some)
    if typing.get_origin(hint) is tuple:
        parts = [part.strip() for part in text.split(",")] if text.strip() else []
        return tuple(_convert(part, _inner(hint)) for part in parts)
    if hint is not bool:
        return hint(text)
    words = {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False}
    if text.lower() not in words:
        raise ValueError(text)
    return words[text.lower()]
