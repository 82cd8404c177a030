"""Cards and the parsing of options."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedarena.core.card import Card
from fedarena.core.errors import UserError
from fedarena.core.options import (
    LARGEST_INTEGER,
    NoOptions,
    check_acting,
    check_options,
    describe_options,
    option,
    parse_options,
    to_text,
)
from fedarena.core.threat import EVERYONE, FORMS, Form, Party


@dataclass(frozen=True)
class Options:
    """One option of every type."""

    ratio: float = option(0.5, "a share", above=0, high=1)
    steps: int = option(3, "a count", low=1, below=1000)
    law: str = option("a", "a choice", choices=("a", "b"))
    note: str = option("", "free text")
    fast: bool = option(False, "a switch")
    cap: float | None = option(None, "a bound, or none", above=0)
    old: Optional[int] = option(None, "written the old way")  # noqa: UP045
    widths: tuple[int, ...] = option((64, 32), "layer widths", low=1)
    scales: tuple[float, ...] | None = option(None, "scales")


finite = st.floats(allow_nan=False, allow_infinity=False)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "ratio": st.floats(0, 1, exclude_min=True),
    "steps": st.integers(1, 999),
    "law": st.sampled_from(["a", "b"]),
    "note": st.text(),
    "fast": st.booleans(),
    "cap": st.none() | st.floats(min_value=0, exclude_min=True, allow_infinity=False),
    "old": st.none() | st.integers(-LARGEST_INTEGER, LARGEST_INTEGER),
    "widths": st.lists(st.integers(1, 10**6)).map(tuple),
    "scales": st.none() | st.lists(finite).map(tuple),
}


@given(st.fixed_dictionaries({}, optional=VALUES))
def test_what_to_text_writes_parse_options_reads(values: dict[str, Any]) -> None:
    made = parse_options(Options, {name: to_text(value) for name, value in values.items()}, "x")
    assert made == Options(**values)
    assert [type(getattr(made, n)) for n in values] == [type(v) for v in values.values()]


@given(st.sampled_from(sorted(VALUES)), st.text())
def test_any_text_gives_an_allowed_value_or_one_line(name: str, text: str) -> None:
    made = parsed_or_refusal(name, text)
    if isinstance(made, str):
        assert len(made.splitlines()) == 1
        assert f"option '{name}'" in made
        assert "allowed: " in made
    else:
        check_options(made, "defense x")
        assert dataclasses.replace(Options(), **{name: getattr(made, name)}) == made


def parsed_or_refusal(name: str, text: str) -> Options | str:
    try:
        made: Options = parse_options(Options, {name: text}, "defense x")
    except UserError as error:
        return str(error)
    return made


@given(st.text().filter(lambda t: t.replace("-", "_") not in VALUES))
def test_unknown_options_are_refused_in_one_line(name: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_options(Options, {name: "1"}, "defense x")
    assert str(caught.value).startswith("defense x has no option ")
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("ratio", "0", "option 'ratio' is 0.0, allowed: number in (0, 1]"),
        ("ratio", "1.01", "option 'ratio' is 1.01, allowed: number in (0, 1]"),
        ("ratio", "nan", "option 'ratio' is nan, allowed: number in (0, 1]"),
        ("ratio", "half", "option 'ratio' is 'half', allowed: number in (0, 1]"),
        ("steps", "1.5", "option 'steps' is '1.5', allowed: integer in [1, 1000)"),
        ("steps", "1000", "option 'steps' is 1000, allowed: integer in [1, 1000)"),
        ("law", "c", "option 'law' is 'c', allowed: a, b"),
        ("fast", "maybe", "option 'fast' is 'maybe', allowed: true, false"),
        ("cap", "inf", "option 'cap' is inf, allowed: number or none in (0, inf)"),
        ("widths", "8,0", "option 'widths' is (8, 0), allowed: integer,... in [1, inf)"),
        ("widths", "8,,8", "option 'widths' is '8,,8', allowed: integer,... in [1, inf)"),
        ("ration", "1", "has no option 'ration'; did you mean ratio?"),
    ],
)
def test_messages_name_option_value_and_what_is_allowed(name: str, text: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_options(Options, {name: text}, "defense x")
    assert message in str(caught.value)


def test_an_option_given_twice_is_refused() -> None:
    @dataclass(frozen=True)
    class TwoWords:
        batch_size: int = option(1, "samples")

    assert parse_options(TwoWords, {"batch-size": "4"}, "x").batch_size == 4
    with pytest.raises(UserError, match="'batch_size' is given twice"):
        parse_options(TwoWords, {"batch-size": "4", "batch_size": "8"}, "x")


def test_description_of_every_type() -> None:
    rows = {row.name: (row.type, row.allowed) for row in describe_options(Options)}
    assert rows == {
        "ratio": ("number", "number in (0, 1]"),
        "steps": ("integer", "integer in [1, 1000)"),
        "law": ("text", "a, b"),
        "note": ("text", "text"),
        "fast": ("boolean", "true, false"),
        "cap": ("number or none", "number or none in (0, inf)"),
        "old": ("integer or none", "integer or none in (-inf, inf)"),
        "widths": ("integer,...", "integer,... in [1, inf)"),
        "scales": ("number,... or none", "number,... or none in (-inf, inf)"),
    }


def card(**changes: Any) -> Card:
    return Card(**{"name": "x", "kind": "defense", "title": "t", "target": object, **changes})


def test_a_card_without_options_refuses_every_option() -> None:
    assert card().parse({}) == NoOptions()
    with pytest.raises(UserError, match="defense x has no option 'a'; it has none"):
        card().parse({"a": "1"})


@pytest.mark.parametrize(
    "changes",
    [{"kind": "shield"}, {"name": "Two Words"}, {"name": ""}, {"name": "a_b"}, {"name": "none"}, {"version": 0}],
)
def test_malformed_cards_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="allowed"):
        card(**changes)


def declare(hint: Any, default: Any, frozen: bool = True, **limits: Any) -> type[Any]:
    field = option(default, "help", **limits) if limits.pop("made", True) else dataclasses.field(default=default)
    return dataclasses.make_dataclass("Made", [("value", hint, field)], frozen=frozen)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (declare(int, 1, frozen=False), "frozen dataclass"),
        (int, "frozen dataclass"),
        (dataclasses.make_dataclass("Bare", [("value", int, 1)], frozen=True), "not made with"),
        (declare(float, 1), "default 1, which is not of type number"),
        (declare(int, True), "default True"),
        (declare(tuple[int, ...], (1, 2.0)), "default"),
        (declare(list[int], None), "allowed: int, float"),
        (declare(tuple[int, int], (1, 2)), "allowed: int, float"),
        (declare(int | str, 1), "allowed: int, float"),
    ],
)
def test_options_that_text_cannot_give_are_refused(options: type[Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        card(options=options)


def test_a_default_outside_its_own_range_is_refused() -> None:
    with pytest.raises(UserError, match=r"option 'value' is 2\.0, allowed"):
        card(options=declare(float, 2.0, high=1))


def test_an_option_that_acts_with_what_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="acts with 'law', 'b', which the class"):
        card(options=declare(int, 1, acts_with=("law", "b")))
    with pytest.raises(ValueError, match="acts with 'value', 'b'"):
        card(options=declare(int, 1, acts_with=("value", "b")))
    with pytest.raises(ValueError, match="acts with 'law', 'b', which the class"):
        card(options=declare(int, 1, idle_with=("law", "b")))
    with pytest.raises(ValueError, match=r"Made\.value names 'value' without a value, allowed: the name and values"):
        card(options=declare(int, 1, idle_with=("value",)))
    with pytest.raises(ValueError, match=r"Made\.value has acts_with and idle_with, allowed: one of them"):
        card(options=declare(int, 1, acts_with=("value", 2), idle_with=("value", 1)))


@dataclass(frozen=True)
class Dependent:
    """Options that act with others."""

    law: str = option("a", "a choice", choices=("a", "b", "c"))
    turns: int = option(0, "a count", low=0)
    width: float = option(1.0, "a width", acts_with=("law", "b"))
    pause: int | None = option(None, "a pause", idle_with=("turns", 0))
    depth: int = option(1, "a depth", idle_with=("law", "a", "b"))
    pairs: tuple[str, ...] = option((), "names", acts_with=("law", "b"))


def test_an_option_that_would_do_nothing_is_refused() -> None:
    assert parse_options(Dependent, {"law": "b", "width": "2"}, "x").width == 2
    assert parse_options(Dependent, {"turns": "3", "pause": "1"}, "x").pause == 1
    assert parse_options(Dependent, {"width": "1"}, "x") == Dependent()  # the default said aloud
    with pytest.raises(
        UserError,
        match=r"x: option 'width' is 2\.0, allowed with law=a: 1\.0, because it does nothing there; "
        r"it acts with law=b$",
    ):
        parse_options(Dependent, {"width": "2"}, "x")
    with pytest.raises(
        UserError, match=r"'pairs' is a,b, allowed with law=a: no value, because it does nothing there; "
    ):
        parse_options(Dependent, {"pairs": "a,b"}, "x")
    with pytest.raises(UserError, match=r"'pause' is 1, allowed with turns=0: none, .* acts with turns other than 0$"):
        parse_options(Dependent, {"pause": "1"}, "x")
    assert parse_options(Dependent, {"law": "c", "depth": "2"}, "x").depth == 2
    for law in ("a", "b"):
        said = rf"'depth' is 2, allowed with law={law}: 1, .* acts with law other than a and b$"
        with pytest.raises(UserError, match=said):
            parse_options(Dependent, {"law": law, "depth": "2"}, "x")
    helps = {row.name: row.help for row in describe_options(Dependent)}
    assert helps["width"] == "a width (acts with law=b alone)"
    assert helps["pause"] == "a pause (acts with turns other than 0 alone)"


@dataclass(frozen=True)
class Outside:
    """Options of which one acts for those without the parameters, and others in one form."""

    step: float = option(1.0, "a step")
    queries: int = option(3, "a count", party="outsider")
    rule: str = option("a", "a choice", choices=("a", "b"), form="adaptive")
    shown: str = option("x", "a choice", choices=("x", "y"), idle_with=("rule", "b"))
    width: int = option(1, "a width", form="adaptive", acts_with=("rule", "b"))


def refused(party: Party | None = None, form: Form | None = None, **given: str) -> str:
    """What is said of options when an attack is run as one party in one form, or as all in all; empty: nothing."""
    made = parse_options(Outside, given, "x")
    try:
        check_acting(made, "x", (party,) if party else EVERYONE, (form,) if form else FORMS)
    except UserError as error:
        return str(error)
    return ""


def test_an_option_for_another_party_alone_is_refused() -> None:
    assert not refused(queries="4")
    assert not refused("outsider", queries="4")
    assert not refused("server", step="4", queries="3")
    check_acting(parse_options(Outside, {"queries": "4"}, "x"), "x", ("server", "outsider"), FORMS)
    with pytest.raises(
        UserError,
        match=r"x: option 'queries' is 4, allowed with party server, client: 3, "
        r"because it acts for party outsider alone$",
    ):
        check_acting(parse_options(Outside, {"queries": "4"}, "x"), "x", ("server", "client"), FORMS)
    assert describe_options(Outside)[1].help == "a count (acts for party outsider alone)"
    with pytest.raises(ValueError, match=r"Made\.value is for party 'nobody', allowed: server, client"):
        card(options=declare(int, 1, party="nobody"))


def test_an_option_of_another_form_alone_is_refused() -> None:
    assert not refused(rule="b")
    assert not refused(form="adaptive", rule="b")
    said = "x: option 'rule' is b, allowed with form paper: a, because it acts in form adaptive alone"
    assert refused(form="paper", rule="b") == said
    assert describe_options(Outside)[2].help == "a choice (acts in form adaptive alone)"
    assert describe_options(Outside)[4].help == "a width (acts with rule=b alone) (acts in form adaptive alone)"
    with pytest.raises(ValueError, match=r"Made\.value is for form 'long', allowed: paper, adaptive"):
        card(options=declare(int, 1, form="long"))


def test_an_option_is_refused_in_the_form_in_which_it_does_not_act() -> None:
    both = {"rule": "b", "shown": "y"}
    assert not refused(**both), "in the paper form the rule is a, and what is shown matters"
    assert refused(form="adaptive", **both) == (
        "x: option 'shown' is y, allowed with rule=b: x, because it does nothing there; it acts with rule other than b"
    )
    assert not refused(form="paper", shown="y")
    assert not refused(rule="b", width="2")
    with pytest.raises(UserError, match=r"'width' is 2, allowed with rule=a: 1, .* it acts with rule=b$"):
        parse_options(Outside, {"width": "2"}, "x")


@given(finite)
def test_bounds_are_what_the_description_says(value: float) -> None:
    closed, opened = declare(float, 0.5, low=0, high=1), declare(float, 0.5, above=0, below=1)

    def accepts(options: type[Any]) -> bool:
        try:
            return bool(parse_options(options, {"value": repr(value)}, "x").value == value)
        except UserError:
            return False

    assert accepts(closed) == (0 <= value <= 1)
    assert accepts(opened) == (0 < value < 1)
    assert not math.isnan(value)
