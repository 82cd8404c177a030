"""Laws of every kind of method: the card, and the options."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from typing import Any

from fedarena.contracts.inference import Inference
from fedarena.core.errors import UserError
from fedarena.core.files import canonical
from fedarena.core.options import check_acting, describe_options, parse_options, to_text
from fedarena.core.threat import FORMS, READERS, Form, Party
from fedarena.testing.law import LawBroken, LawIdle, Method, law, require

NONSENSE = ("", "none", "nan", "inf", "-1", "0", "1e9", "true", "no such value")
"""Texts that are no value of most options."""


@law()
def card_cites(method: Method) -> None:
    """A card has a title of one line, and names authors, year and address of the paper that it cites."""
    card = method.card
    require(bool(card.title.strip()) and "\n" not in card.title, f"the title is {card.title!r}", "give one line")
    empty = sum(not (label and text) for label, text in card.facts) + sum(not text for text in card.departures)
    require(not empty, f"{empty} of its facts and departures are empty", "say something there, or leave them out")
    if card.paper:
        year = card.year or 0
        require(bool(card.authors), "a paper without authors", "set authors")
        require(1900 <= year <= 2100, f"the paper's year is {card.year}", "set year to one from 1900 to 2100")
        address = re.fullmatch(r"https?://\S+", card.url)
        require(address is not None, f"the paper's address is {card.url!r}", "set url to one that starts with https://")


@law()
def target_fits(method: Method) -> None:
    """A card's target can be loaded, and is a complete subclass or a function of its kind's contract."""
    try:
        method.card.load()
    except UserError as error:
        raise LawBroken(str(error), "write what is allowed, or mend what the target's import runs into") from None


@law("attack")
def card_says_the_goal(method: Method) -> None:
    """An attack's card names the goal of its class, or poisoning, where it names one."""
    kind = method.target
    goal = kind.goal if issubclass(kind, Inference) else "poisoning"
    said = method.card.goal
    require(said in ("", goal), f"the card's goal is {said!r}, the attack's {goal!r}", f"set goal to {goal!r}")


@law()
def defaults_parse(method: Method) -> None:
    """Options at their defaults are the same from nothing, from text and from the class, and each has a help text."""
    card, rows = method.card, describe_options(method.card.options)
    made = card.parse({})
    for way, other in {
        "the class": card.options(**{row.name: row.default for row in rows}),
        "text": card.parse({row.name: to_text(row.default) for row in rows}),
    }.items():
        require(made == other, f"the defaults are {made}, but from {way} {other}", "leave defaults as declared")
    silent = [row.name for row in rows if not row.help]
    require(not silent, f"no help text: {', '.join(silent)}", "say in each option's help what it does")


@law()
def options_differ(method: Method) -> None:
    """Another value of an option changes that option and no other, with dashes as with underscores."""
    for name in option_names(method.card.options):
        option_differs(method.card.options, name, method.name)


@law()
def bad_options_refused(method: Method) -> None:
    """An unknown option or a value that is not allowed is refused by UserError in one line that names the option."""
    card = method.card
    try:
        card.parse({"no-such-option": "1"})
    except UserError as error:
        require("\n" not in str(error), "the message has several lines", "write one line")
    else:
        raise LawBroken("an unknown option was accepted", "let `parse_options` read the options")
    for name in option_names(card.options):
        there = where_it_acts(card.options, name)
        for text in (*candidates(card.options, name), *NONSENSE):
            try:
                card.parse(there | {name: text})
            except UserError as error:
                one = name in str(error) and "\n" not in str(error)
                require(one, f"{name}={text} is refused with {str(error)!r}", "name the option, in one line")
            except Exception as error:
                refused = f"{name}={text} raises {type(error).__name__}: {error}"
                raise LawBroken(refused, "raise fedarena.core.errors.UserError, or declare what is allowed") from error


@law()
def idle_options_refused(method: Method) -> None:
    """An option is refused where, by its own declaration, it would do nothing."""
    options = method.card.options
    for name in option_names(options):
        needs_are_enforced(options, name, method.name)
        for what in ("party", "form"):
            if metadata(options, name)[what] is not None:
                one_party_is_enforced(options, name, what, method.name)


# -- one option -------------------------------------------------------------------------------------


def option_names(options: type[Any]) -> list[str]:
    """Its options. Raises LawIdle where there are none."""
    names = [field.name for field in dataclasses.fields(options)]
    if not names:
        raise LawIdle("it has no options")
    return names


def option_differs(options: type[Any], name: str, owner: str) -> None:
    """Raises LawBroken unless an option's other value changes it alone, with dashes as with underscores."""
    text, there = other_value(options, name), where_it_acts(options, name)
    default = parse_options(options, there, owner)
    other = parse_options(options, there | {name: text}, owner)
    dashed = parse_options(options, there | {name.replace("_", "-"): text}, owner)
    before, after = dataclasses.asdict(default), dataclasses.asdict(other)
    changed = {key for key in before if before[key] != after[key]}
    told = ", ".join(sorted(changed)) or "nothing"
    require(
        changed == {name} and canonical(before) != canonical(after),
        f"{name}={text} changes {told}",
        "let an option hold the value that was given, and change no other",
    )
    require(dashed == other, f"{name}={text} with dashes gives {dashed}", "let `parse_options` read the options")


def needs_are_enforced(options: type[Any], name: str, owner: str) -> None:
    """Raises LawBroken unless an option is refused beside the values of another with which it does nothing."""
    for other, values, acts in [dataclasses.astuple(needs) for needs in metadata(options, name)["needs"]]:
        default = getattr(options(), other)
        texts = [to_text(value) for value in values]
        there = (to_text(default), *candidates(options, other))
        elsewhere = next(text for text in there if text not in texts) if acts else texts[-1]
        # Where the other acts itself, lest it stand at its default.
        parties, forms = only(options, other)
        accept(options, {other: elsewhere}, owner, parties, forms)
        said = f"option '{name}' is .*, allowed with {other}={re.escape(elsewhere)}: "
        given = {name: other_value(options, name), other: elsewhere}
        _refused(lambda given=given, at=(parties, forms): accept(options, given, owner, *at), said, name)


def one_party_is_enforced(options: type[Any], name: str, what: str, owner: str) -> None:
    """Raises LawBroken unless an option for one party, or one form, is refused for all others, and says so."""
    made = parse_options(options, where_it_acts(options, name) | {name: other_value(options, name)}, owner)
    one = metadata(options, name)[what]
    parties, forms = only(options, name)
    check_acting(made, owner, parties, forms)
    others: dict[str, Any] = {"party": parties, "form": forms}
    others[what] = [word for word in {"party": READERS, "form": FORMS}[what] if word != one]
    said = rf"option '{name}' is .*, allowed with {what} .* (for party|in form) {one} alone"
    _refused(lambda: check_acting(made, owner, others["party"], others["form"]), said, name)
    shown = next(row.help for row in describe_options(options) if row.name == name)
    require(f"{one} alone)" in shown, f"the help of {name} is {shown!r}", "let `option` write it")


def _refused(give: Any, said: str, name: str) -> None:
    try:
        give()
    except UserError as error:
        require(re.search(said, str(error)) is not None, f"{name} is refused with {str(error)!r}", f"say: {said}")
    else:
        raise LawBroken(f"{name} is accepted where it does nothing", "declare acts_with, idle_with, party or form")


def metadata(options: type[Any], name: str) -> Mapping[str, Any]:
    """What an option was declared with."""
    (found,) = [field.metadata for field in dataclasses.fields(options) if field.name == name]
    return found


def accept(
    options: type[Any], given: Mapping[str, str], owner: str, parties: Collection[Party], forms: Collection[Form]
) -> None:
    """Raises UserError for options that would do nothing as these parties and in these forms."""
    check_acting(parse_options(options, given, owner), owner, parties, forms)


def only(options: type[Any], name: str) -> tuple[tuple[Party, ...], tuple[Form, ...]]:
    """As which parties and in which forms an option acts."""
    meta = metadata(options, name)
    return (meta["party"],) if meta["party"] else READERS, (meta["form"],) if meta["form"] else FORMS


def where_it_acts(options: type[Any], name: str) -> dict[str, str]:
    """What another option has to be for this one to act."""
    for needs in metadata(options, name)["needs"]:
        if needs.acts:
            return {needs.other: to_text(needs.values[0])}
        default = getattr(options(), needs.other)
        return {needs.other: to_text(default) if needs.met(default) else other_value(options, needs.other)}
    return {}


def other_value(options: type[Any], name: str) -> str:
    """An allowed value other than the default, as text. Raises LawBroken where there is none."""
    default = getattr(options(), name)
    for text in candidates(options, name):
        with suppress(UserError):
            if getattr(parse_options(options, where_it_acts(options, name) | {name: text}, "x"), name) != default:
                return text
    raise LawBroken(f"{name} allows no value but {default!r}", "allow another value, or leave the option out")


def candidates(options: type[Any], name: str) -> Iterator[str]:
    """Texts that may be allowed: the choices, the bounds, and neighbours of the default."""
    meta, default = metadata(options, name), getattr(options(), name)
    yield from (to_text(choice) for choice in meta["choices"] or ())
    yield from (to_text(meta[bound]) for bound in ("low", "high") if meta[bound] is not None)
    if type(default) in (int, float):
        yield from (to_text(value) for value in (default + 1, default - 1, default / 2, default * 1.01))
    if isinstance(default, tuple) and default:
        yield to_text((*default, default[0]))
    yield from ("true", "false", "none", "1", "0.5", "other")
