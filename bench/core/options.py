"""Options of methods.

They are the fields of a frozen dataclass made with `option`, so that one declaration gives the type, the default, the
allowed range, the help text and typed access. Types are `int`, `float`, `str`, `bool`, and of these `T | None` and
`tuple[T, ...]`:

    @dataclass(frozen=True)
    class Options:
        ratio: float = option(0.5, "sketch size s as a share of d_in", above=0, high=1)
"""

from __future__ import annotations

import dataclasses
import math
import operator
import types
import typing
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fedarena.core.did_you_mean import did_you_mean
from fedarena.core.errors import UserError
from fedarena.core.method_caches import method_cache
from fedarena.core.threat import FORMS, READERS, Form, Party

LARGEST_INTEGER = 2**53 - 1
"""The largest integer that an option may have. Records are JSON, and a reader with double precision, such as a browser,
would round larger ones."""


@dataclass(frozen=True)
class NoOptions:
    """The options of a method that has none."""


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
    idle_with: tuple[str, *tuple[Any, ...]] | None = None,
    party: Party | None = None,
    form: Form | None = None,
    listed: bool = True,
) -> Any:
    """A dataclass field with a help text and an allowed range (`low <=`, `above <`, `<= high`, `< below`).

    Where an option would do nothing, nothing but its default is allowed.

    Args:
        acts_with: another option and its values; only with these values has this option an effect.
        idle_with: another option and its values; with these values this option has no effect. At most one of
            `acts_with` and `idle_with` is given.
        party, form: for inference attacks: the only party, and the only form, for which the option has an effect.
        listed: whether a record lists the option at its default, too. False for an option that came after results had
            been published, and whose default changes nothing: so these results keep their keys.
    """
    given = [Needs(*needs[:1], needs[1:], acts) for needs, acts in ((acts_with, True), (idle_with, False)) if needs]
    metadata = {"help": help, "low": low, "high": high, "above": above, "below": below, "choices": choices}
    return field(default=default, metadata=metadata | {"needs": given, "party": party, "form": form, "listed": listed})


@method_cache
def types_of(options: type[Any]) -> dict[str, Any]:
    """Name → type of every option of a class. The types stand there as text, which takes long to read."""
    return typing.get_type_hints(options)


def as_recorded(options: Any) -> dict[str, Any]:
    """The values of an options object as a record lists them: all but the unlisted ones at their defaults."""
    values = dataclasses.asdict(options)
    hidden = {f.name for f in dataclasses.fields(options) if not f.metadata["listed"] and values[f.name] == f.default}
    return {name: value for name, value in values.items() if name not in hidden}


@dataclass(frozen=True)
class Needs:
    """The condition on another option under which an option has an effect.

    Attributes:
        other: the name of the other option.
        values: values of the other option.
        acts: whether the option has an effect with these values; else it has one with all others.
    """

    other: str
    values: tuple[Any, ...]
    acts: bool

    def met(self, value: Any) -> bool:
        """Whether the option has an effect beside this value of the other option."""
        return (value in self.values) == self.acts

    def __str__(self) -> str:
        """prior=population, or "tune other than 0"."""
        texts = [to_text(value) for value in self.values]
        if self.acts:
            return " or ".join(f"{self.other}={text}" for text in texts)
        return f"{self.other} other than {' and '.join(texts)}"


def check_declaration(options: type[Any]) -> None:
    """Check that an options class is as command line and records need it.

    Raises:
        TypeError: not a frozen dataclass, a field not made with `option`, a type that cannot be given as text, or a
            default of another type (in records, 1 and 1.0 differ).
        UserError: a default outside its own range.
        ValueError: a condition that names an unknown option, a value of the wrong type, an unknown party or form.
    """
    if not getattr(getattr(options, "__dataclass_params__", None), "frozen", False):
        raise TypeError(f"options must be a frozen dataclass, not {options!r}")
    hints = types_of(options)
    for f in dataclasses.fields(options):
        where = f"{options.__qualname__}.{f.name}"
        if "help" not in f.metadata:
            raise TypeError(f"{where} is not made with fedarena.core.options.option")
        if scalar(hints[f.name]) not in (int, float, str, bool):
            raise TypeError(
                f"{where} is of type {hints[f.name]}, allowed: int, float, str, bool, T | None, tuple[T, ...]"
            )
        if not is_a(f.default, hints[f.name]):
            raise TypeError(f"{where} has the default {f.default!r}, which is not of type {type_name(hints[f.name])}")
        for what, words in (("party", READERS), ("form", FORMS)):
            if f.metadata[what] not in (None, *words):
                raise ValueError(f"{where} is for {what} {f.metadata[what]!r}, allowed: {', '.join(words)}")
        if len(f.metadata["needs"]) > 1:
            raise ValueError(f"{where} has acts_with and idle_with, allowed: one of them")
        for needs in f.metadata["needs"]:
            if not needs.values:
                raise ValueError(f"{where} names {needs.other!r} without a value, allowed: the name and values")
            if needs.other not in hints or not all(is_a(value, hints[needs.other]) for value in needs.values):
                named = ", ".join(map(repr, (needs.other, *needs.values)))
                raise ValueError(f"{where} acts with {named}, which the class does not have")
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
    hints = types_of(options)

    def info(f: dataclasses.Field[Any]) -> OptionInfo:
        hint, meta = hints[f.name], f.metadata
        where = [f"with {needs}" for needs in meta["needs"]]
        where += [f"{how} {meta[what]}" for what, how in HOW.items() if meta[what] is not None]
        conditions = "".join(f" (acts {one} alone)" for one in where)
        return OptionInfo(f.name, type_name(hint), f.default, allowed(hint, meta), meta["help"] + conditions)

    return [info(f) for f in dataclasses.fields(options)]


def parse_options(options: type[Any], given: Mapping[str, str], owner: str) -> Any:
    """Build an options object from text values.

    Raises:
        UserError: an option that does not exist, does not parse, lies outside its range, or would do nothing.
    """
    hints = types_of(options)
    fields = {f.name: f for f in dataclasses.fields(options)}
    values: dict[str, Any] = {}
    for name, text in given.items():
        key = name.replace("-", "_")
        if key not in fields:
            raise UserError(f"{owner} has no option {name!r}{did_you_mean(key, fields)}")
        if key in values:
            raise UserError(f"{owner}: option '{key}' is given twice, allowed: once")
        try:
            values[key] = convert(text, hints[key])
        except ValueError:
            may = allowed(hints[key], fields[key].metadata)
            raise UserError(f"{owner}: option '{name}' is {text!r}, allowed: {may}") from None
        if any(type(one) is int and abs(one) > LARGEST_INTEGER for one in _items(values[key])):
            raise UserError(f"{owner}: option '{name}' is {text!r}, allowed: integers up to {LARGEST_INTEGER}")
    parsed = options(**values)
    check_options(parsed, owner)
    return parsed


def check_options(chosen: Any, owner: str) -> None:
    """Check the declared ranges, and that each option has an effect for some party in some form. Raises UserError."""
    hints = types_of(type(chosen))
    check_acting(chosen, owner, READERS, FORMS)
    for f in dataclasses.fields(chosen):
        value, meta = getattr(chosen, f.name), f.metadata
        if value is None:
            continue
        for item in _items(value):
            if not within(item, meta):
                may = allowed(hints[f.name], meta)
                raise UserError(f"{owner}: option '{f.name}' is {value!r}, allowed: {may}")


def _items(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


HOW = {"party": "for party", "form": "in form"}
"""The words for the party or the form for which an option has an effect."""


def check_acting(chosen: Any, owner: str, parties: Collection[Party], forms: Collection[Form]) -> None:
    """Check that each given option has an effect if an attack is run as these parties and in these forms.

    For other parties and forms, an option that acts for one of them alone has its default. The conditions of other
    options are checked with that default, too. Raises UserError.
    """
    fields = {f.name: f for f in dataclasses.fields(chosen)}
    run = {"party": frozenset[str](parties), "form": frozenset[str](forms)}
    for f in fields.values():
        if (value := getattr(chosen, f.name)) == f.default:
            continue
        said, least = _shown(value), _shown(f.default)
        acts = _where(f, run)
        for what, how in HOW.items():
            if not acts[what]:
                run_with = ", ".join(parties if what == "party" else forms)
                raise UserError(
                    f"{owner}: option '{f.name}' is {said}, allowed with {what} {run_with}: {least}, because it acts "
                    f"{how} {f.metadata[what]} alone"
                )
        for needs in f.metadata["needs"]:
            other = fields[needs.other]
            there = _values(other, getattr(chosen, other.name), acts)
            if not any(needs.met(one) for one in there):
                raise UserError(
                    f"{owner}: option '{f.name}' is {said}, allowed with {other.name}={_shown(there[0])}: {least}, "
                    f"because it does nothing there; it acts with {needs}"
                )


def _where(f: dataclasses.Field[Any], run: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    """The parties and the forms of a run for which an option has an effect."""
    return {what: values if f.metadata[what] is None else values & {f.metadata[what]} for what, values in run.items()}


def _values(f: dataclasses.Field[Any], value: Any, run: Mapping[str, frozenset[str]]) -> list[Any]:
    """The values of an option in a run: the given one where it has an effect, and its default where it has none."""
    acts = _where(f, run)
    return [value] * all(acts.values()) + [f.default] * (acts != run)


def to_text(value: Any) -> str:
    """An option's value as one writes it on the command line; `parse_options` reads it back."""
    if isinstance(value, tuple):
        return ",".join(to_text(item) for item in value)
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return str(value)


def _shown(value: Any) -> str:
    """An option's value in a message, where an empty one must be seen."""
    return to_text(value) or "no value"


def within(value: Any, meta: Mapping[str, Any]) -> bool:
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


def allowed(hint: Any, meta: Mapping[str, Any]) -> str:
    if meta["choices"] is not None:
        return ", ".join(str(c) for c in meta["choices"])
    inner = scalar(hint)
    if inner is bool:
        return "true, false"
    low, above, high, below = (meta[k] for k in ("low", "above", "high", "below"))
    left = f"[{low:g}" if low is not None else f"({above:g}" if above is not None else "(-inf"
    right = f"{high:g}]" if high is not None else f"{below:g})" if below is not None else "inf)"
    if inner in (int, float):
        return f"{type_name(hint)} in {left}, {right}"
    return type_name(hint)


def type_name(hint: Any) -> str:
    if typing.get_origin(hint) is tuple:
        return f"{type_name(typing.get_args(hint)[0])},..."
    args = typing.get_args(hint)
    if args:
        return " or ".join("none" if a is type(None) else type_name(a) for a in args)
    words = {int: "integer", float: "number", str: "text", bool: "boolean"}
    return words.get(hint, getattr(hint, "__name__", str(hint)))


def _optional(hint: Any) -> Any | None:
    """T of `T | None` (however it is written), else None."""
    args = typing.get_args(hint)
    if typing.get_origin(hint) in (types.UnionType, typing.Union) and len(args) == 2 and type(None) in args:
        return next(a for a in args if a is not type(None))
    return None


def scalar(hint: Any) -> Any:
    """The scalar type of `T`, `T | None` or `tuple[T, ...]`."""
    if (some := _optional(hint)) is not None:
        return scalar(some)
    if typing.get_origin(hint) is tuple:
        item, *rest = typing.get_args(hint)
        return item if rest == [...] else hint
    return hint


def is_a(value: Any, hint: Any) -> bool:
    """Whether a value has exactly the declared type: 1 is no float and True no int."""
    if (some := _optional(hint)) is not None:
        return value is None or is_a(value, some)
    if typing.get_origin(hint) is tuple:
        return type(value) is tuple and all(type(item) is scalar(hint) for item in value)
    return type(value) is hint


def convert(text: str, hint: Any) -> Any:
    """Raises ValueError where it does not parse."""
    if (some := _optional(hint)) is not None:
        return None if text.strip().lower() == "none" else convert(text, some)
    if typing.get_origin(hint) is tuple:
        parts = [part.strip() for part in text.split(",")] if text.strip() else []
        return tuple(convert(part, scalar(hint)) for part in parts)
    if hint is not bool:
        return hint(text)
    words = {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False}
    if text.lower() not in words:
        raise ValueError(text)
    return words[text.lower()]
