"""Checks of JSON that follow from types."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, TypedDict

import pytest

from fedarena.records.json_schema import MAY_LACK, check_of, share


class Inner(TypedDict, total=False):
    count: int


class Table(TypedDict):
    name: str
    score: Annotated[float, share]
    inner: Inner
    later: NotRequired[bool | None]
    rarely: NotRequired[Annotated[int, MAY_LACK]]


GOOD = {"name": "a", "score": 0.5, "inner": {}, "later": None}


@pytest.mark.parametrize(
    ("kind", "good", "bad", "complaint"),
    [
        (str, "a", 1, "at is 1, which is not a text"),
        (bool, True, 1, "at is 1, which is not true or false"),
        (int, 3, True, "at is true, which is not a whole number"),
        (float, 3, "3", 'at is "3", which is not a number'),
        (Literal["", "a"], "", "b", 'at is "b", allowed: nothing, a'),
        (int | None, None, "a", 'at is "a", which is not a whole number'),
        (list[float], [1, 0.5], [1, None], r"at\[1\] is null, which is not a number"),
        (dict[str, list[str]], {"a": ["b"]}, {"a": [1]}, r"at.a\[0\] is 1, which is not a text"),
        (Annotated[float, share], 1.0, 1.5, r"at is 1.5, which is not a number in \[0, 1\]"),
        (Table, GOOD, {**GOOD, "score": 2}, r"at.score is 2, which is not a number in \[0, 1\]"),
        (Table, GOOD, {**GOOD, "inner": {"count": "a"}}, 'at.inner.count is "a", which is not a whole number'),
        (Table, {**GOOD, "more": 1}, {"name": "a"}, "at has no score"),
        (Table, GOOD, {"name": "a", "score": 0, "inner": {}}, "at has no later"),
        (Table, {**GOOD, "rarely": 1}, {**GOOD, "rarely": "a"}, 'at.rarely is "a", which is not a whole number'),
    ],
)
def test_a_type_says_what_a_value_must_be(kind: Any, good: Any, bad: Any, complaint: str) -> None:
    check = check_of(kind)
    check(good, "at")
    with pytest.raises(ValueError, match=f"^{complaint}$"):
        check(bad, "at")


def test_any_value_passes_where_the_type_is_any() -> None:
    for value in (None, [], "a"):
        check_of(Any)(value, "at")


@pytest.mark.parametrize("kind", [bytes, int | str, tuple[int, int]])
def test_a_type_without_a_check_is_refused(kind: Any) -> None:
    with pytest.raises(TypeError, match="no check is known"):
        check_of(kind)
