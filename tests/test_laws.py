"""What holds for every registered method, third parties' included."""

from __future__ import annotations

import dataclasses
import importlib.util
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import pytest

from fedarena.contracts.aggregator import Aggregator
from fedarena.contracts.defense import Defense
from fedarena.contracts.inference import Inference
from fedarena.contracts.poisoning import Poisoning
from fedarena.core import registry
from fedarena.core.card import KINDS, Card, Kind
from fedarena.core.errors import UserError
from fedarena.core.files import canonical
from fedarena.core.options import check_acting, describe_options, parse_options, to_text
from fedarena.core.threat import EVERYONE, FORMS, Form, Party
from fedarena.problem.schedule import Schedule

METHODS: list[tuple[Kind, str]] = [(kind, name) for kind in KINDS for name in registry.registries()[kind].names()]
each_method = pytest.mark.parametrize(("kind", "name"), METHODS, ids=[f"{kind}-{name}" for kind, name in METHODS])

OPTIONS: list[tuple[str, type[Any], str]] = [
    (f"{kind} {name}", options, field.name)
    for kind, name in METHODS
    for options in (registry.find(kind, name).options,)
    for field in dataclasses.fields(options)
] + [("training", Schedule, field.name) for field in dataclasses.fields(Schedule)]
each_option = pytest.mark.parametrize(("owner", "options", "name"), OPTIONS, ids=[f"{o}.{n}" for o, _, n in OPTIONS])


def metadata(options: type[Any], name: str) -> Mapping[str, Any]:
    """What an option was declared with."""
    (found,) = [field.metadata for field in dataclasses.fields(options) if field.name == name]
    return found


def is_built_in(card: Card) -> bool:
    return registry.registries()[card.kind].entry(card.name).origin == "fedarena"


def test_there_is_something_of_every_kind() -> None:
    assert {kind for kind, _ in METHODS} == set(KINDS)


@each_method
def test_the_implementation_loads_and_is_what_its_card_says(kind: Kind, name: str) -> None:
    made = registry.find(kind, name).load()
    assert callable(made)
    bases = {"defense": Defense, "aggregator": Aggregator, "attack": (Inference, Poisoning)}
    if kind in bases:
        assert issubclass(made, bases[kind])
        assert not made.__abstractmethods__


@each_method
def test_a_card_says_where_its_method_comes_from(kind: Kind, name: str) -> None:
    card = registry.find(kind, name)
    assert card.title
    assert "\n" not in card.title
    assert all(label and text for label, text in card.facts)
    assert all(card.departures)
    ours = kind in ("defense", "aggregator", "attack") and not card.paper and is_built_in(card)
    if ours:  # then it says so
        assert card.departures[0].startswith("Not from a paper")
    if card.paper:
        assert card.authors
        assert card.year is not None
        assert 1900 <= card.year <= 2100
        assert re.fullmatch(r"https?://\S+", card.url)
    if is_built_in(card) and kind in ("defense", "aggregator", "attack"):
        assert card.equations


@each_method
def test_a_defense_says_what_crosses_the_wire_and_who_knows_what(kind: Kind, name: str) -> None:
    card = registry.find(kind, name)
    if kind == "defense" and is_built_in(card):
        labels = {label for label, _ in card.facts}
        assert {"down", "up", "server knows", "client knows", "eavesdropper knows"} <= labels


@each_method
def test_built_in_cards_live_apart_from_their_implementation(kind: Kind, name: str) -> None:
    card = registry.find(kind, name)
    if is_built_in(card):
        assert isinstance(card.target, str)
        assert importlib.util.find_spec(card.target.partition(":")[0]) is not None


@each_method
def test_defaults_parse_and_are_what_the_description_says(kind: Kind, name: str) -> None:
    card = registry.find(kind, name)
    made = card.parse({})
    rows = describe_options(card.options)
    assert made == card.options(**{row.name: row.default for row in rows})
    assert made == card.parse({row.name: to_text(row.default) for row in rows})
    assert all(row.help for row in rows)


@each_option
def test_every_option_changes_the_resolved_config_and_nothing_else(owner: str, options: type[Any], name: str) -> None:
    there = where_it_acts(options, name)
    default = parse_options(options, there, owner)
    other = parse_options(options, there | {name: other_value(options, name)}, owner)
    before, after = dataclasses.asdict(default), dataclasses.asdict(other)
    assert {key for key in before if before[key] != after[key]} == {name}
    assert canonical(before) != canonical(after)


@each_option
def test_an_option_s_dashes_and_underscores_are_the_same(owner: str, options: type[Any], name: str) -> None:
    text, there = other_value(options, name), where_it_acts(options, name)
    dashed = parse_options(options, there | {name.replace("_", "-"): text}, owner)
    assert dashed == parse_options(options, there | {name: text}, owner)


NEEDY = [row for row in OPTIONS if metadata(*row[1:])["needs"]]
OF_ONE = [
    (*row, what) for row in OPTIONS for what in ("party", "form") if metadata(*row[1:])[what] is not None
]  # owner, options, name, and of what it is for one alone


@pytest.mark.parametrize(("owner", "options", "name"), NEEDY, ids=[f"{o}.{n}" for o, _, n in NEEDY])
def test_an_option_is_refused_where_it_would_do_nothing(owner: str, options: type[Any], name: str) -> None:
    ((other, values, acts),) = [dataclasses.astuple(needs) for needs in metadata(options, name)["needs"]]
    default = getattr(options(), other)
    texts = [to_text(value) for value in values]
    there = (to_text(default), *candidates(options, other, default))
    elsewhere = next(text for text in there if text not in texts) if acts else texts[-1]
    # Where the other acts itself, lest it stand at its default.
    parties, forms = only(options, other)
    said = f"option '{name}' is .*, allowed with {other}={re.escape(elsewhere)}: "
    with pytest.raises(UserError, match=said):
        accept(options, {name: other_value(options, name), other: elsewhere}, owner, parties, forms)
    accept(options, {other: elsewhere}, owner, parties, forms)


@pytest.mark.parametrize(
    ("owner", "options", "name", "what"), OF_ONE, ids=[f"{o}.{n}-{what}" for o, _, n, what in OF_ONE]
)
def test_an_option_for_one_party_or_form_is_refused_elsewhere(
    owner: str, options: type[Any], name: str, what: str
) -> None:
    kind, _, method = owner.partition(" ")
    assert kind == "attack"
    assert issubclass(registry.find("attack", method).load(), Inference), "poisoning has neither party nor form"
    made = parse_options(options, where_it_acts(options, name) | {name: other_value(options, name)}, owner)
    one = metadata(options, name)[what]
    parties, forms = only(options, name)
    check_acting(made, owner, parties, forms)
    others: dict[str, Any] = {"party": parties, "form": forms}
    others[what] = [word for word in {"party": EVERYONE, "form": FORMS}[what] if word != one]
    said = rf"option '{name}' is .*, allowed with {what} .* (for party|in form) {one} alone"
    with pytest.raises(UserError, match=said):
        check_acting(made, owner, others["party"], others["form"])
    shown = next(row.help for row in describe_options(options) if row.name == name)
    assert f"{one} alone)" in shown


def accept(
    options: type[Any],
    given: Mapping[str, str],
    owner: str,
    parties: Collection[Party],
    forms: Collection[Form],
) -> None:
    """Raises UserError for options that would do nothing as these parties and in these forms."""
    check_acting(parse_options(options, given, owner), owner, parties, forms)


def only(options: type[Any], name: str) -> tuple[tuple[Party, ...], tuple[Form, ...]]:
    """As which parties and in which forms an option acts."""
    meta = metadata(options, name)
    return (meta["party"],) if meta["party"] else EVERYONE, (meta["form"],) if meta["form"] else FORMS


def where_it_acts(options: type[Any], name: str) -> dict[str, str]:
    """What another option has to be for this one to act."""
    for needs in metadata(options, name)["needs"]:
        if needs.acts:
            return {needs.other: to_text(needs.values[0])}
        default = getattr(options(), needs.other)
        return {needs.other: to_text(default) if needs.met(default) else other_value(options, needs.other)}
    return {}


def other_value(options: type[Any], name: str) -> str:
    """An allowed value other than the default, as text."""
    default = getattr(options(), name)
    for text in candidates(options, name, default):
        try:
            if getattr(parse_options(options, where_it_acts(options, name) | {name: text}, "x"), name) != default:
                return text
        except UserError:
            continue
    pytest.fail(f"{options.__qualname__}.{name} allows no value but {default!r}")


def candidates(options: type[Any], name: str, default: Any) -> Iterator[str]:
    """Texts that may be allowed: the choices, the bounds, and neighbours of the default."""
    meta = metadata(options, name)
    yield from (to_text(choice) for choice in meta["choices"] or ())
    yield from (to_text(meta[bound]) for bound in ("low", "high") if meta[bound] is not None)
    if type(default) in (int, float):
        yield from (to_text(value) for value in (default + 1, default - 1, default / 2, default * 1.01))
    if isinstance(default, tuple) and default:
        yield to_text((*default, default[0]))
    yield from ("true", "false", "none", "1", "0.5", "other")
