"""Changes of a document of JSON or TOML, and of a file's bytes, as plain data."""

from __future__ import annotations

import copy
import json
import math
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from fuzz import odd
from hypothesis import strategies as st

Path = tuple[str | int, ...]
MARK = "\x01raw "
"""With what a text begins whose rest stands in the file without quotes."""


@dataclass(frozen=True)
class Change:
    """One change of a document.

    Attributes:
        path: the place.
        how: put, drop, double (lists), rename or add (tables); spread puts a text wherever the place's text stands.
        value: what comes there; of add a pair of a name and a value.
    """

    path: Path
    how: str
    value: Any = None

    def apply(self, document: Any) -> Any:
        """The changed document; unchanged where the place is gone after an earlier change."""
        if not self.path:
            return copy.deepcopy(self.value) if self.how == "put" else document
        if self.how == "spread":
            return self._spread(document)
        try:
            node = document
            for name in self.path[:-1]:
                node = node[name]
            self._apply(node, self.path[-1])
        except (KeyError, IndexError, TypeError, AttributeError):
            pass
        return document

    def _apply(self, node: Any, last: Any) -> None:
        if self.how == "put":
            node[last] = copy.deepcopy(self.value)
        elif self.how == "drop":
            del node[last]
        elif self.how == "double" and isinstance(node, list):
            node.append(copy.deepcopy(node[last]))
        elif self.how == "rename" and isinstance(node, dict):
            node[self.value] = node.pop(last)
        elif self.how == "add" and isinstance(node[last], dict):
            node[last][self.value[0]] = copy.deepcopy(self.value[1])

    def _spread(self, document: Any) -> Any:
        """The document with the new text in place of the old one, as a value and as a name; "" only at the place."""
        old = None
        with suppress(KeyError, IndexError, TypeError):
            old = found(document, self.path)
        if isinstance(old, str) and old:
            return _replaced(document, old, self.value)
        return Change(self.path, "put", self.value).apply(document)


def _replaced(document: Any, old: str, new: str) -> Any:
    if isinstance(document, dict):
        return {new if name == old else name: _replaced(value, old, new) for name, value in document.items()}
    if isinstance(document, list):
        return [_replaced(value, old, new) for value in document]
    return new if document == old else document


def other_type(before: Any, after: Any, free: frozenset[str] = frozenset()) -> str:
    """Where a document holds a value of another type of JSON than it did; empty where nowhere. Null may stand for any.

    Args:
        free: names of fields that may hold anything.
    """
    kinds = [_KIND.get(type(value), "") for value in (before, after)]
    if kinds[0] != kinds[1]:
        return "" if None in (before, after) else f"a {kinds[1]} in place of a {kinds[0]}"
    shared: list[Any] = []
    if isinstance(before, dict):
        shared = [name for name in before if name in after and name not in free]
    elif isinstance(before, list):
        shared = [*range(min(len(before), len(after)))]
    told = ((name, other_type(before[name], after[name], free)) for name in shared)
    return next((f"{name}: {text}" for name, text in told if text), "")


_KIND = {bool: "flag", int: "number", float: "number", str: "text", list: "list", dict: "table"}


def paths(document: Any, at: Path = ()) -> Iterator[Path]:
    """All places of a document, the whole last."""
    inner = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for name, value in inner:
        yield from paths(value, (*at, name))
    yield at


def like(value: Any, words: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    """Odd values of a value's own type, which pass a check of types."""
    if isinstance(value, bool):
        return st.just(not value)
    if isinstance(value, int):
        return st.one_of(
            st.sampled_from([0, 1, 2, -1, 3, 20, value + 1, 2**31, 2**53, 2**63 - 1, 2**63, 10**30]), st.integers()
        )
    if isinstance(value, float):
        return st.one_of(
            st.sampled_from([0.0, -1.0, 1.0, -0.0, 2.0, 1e308, -1e308, 1e-320, math.nan, math.inf]), st.floats()
        )
    if isinstance(value, str):
        return st.one_of(words, words, odd.texts(nul=True))
    if isinstance(value, list) and value:
        return st.sampled_from([[], value[:1], [*value, value[0]], value[::-1], value * 50])
    return st.sampled_from([{}, [], None])


@st.composite
def changes(
    draw: Any,
    document: Any,
    values: st.SearchStrategy[Any] = odd.values,
    words: st.SearchStrategy[str] = odd.numbers,
    keys: st.SearchStrategy[str] = odd.numbers,
) -> Change:
    """Changes of a document: mostly another value of the same type, or of any, or one that another place has.

    Args:
        values: of any type. words: texts that mean something. keys: names of fields that mean something.
    """
    places = sorted(paths(document), key=lambda path: (len(path), str(path)))
    path = draw(_fields(places)) if draw(st.booleans()) else draw(_places(document))
    how = draw(st.sampled_from(["like"] * 8 + ["put"] * 3 + ["raw", "swap", "drop", "drop", "double", "rename", "add"]))
    if how == "like":
        return Change(path, "put", draw(like(found(document, path), words)))
    if how in ("put", "raw", "swap"):
        raw = st.sampled_from(odd.RAW).map(lambda text: MARK + text)
        others = st.sampled_from(places).map(lambda place: found(document, place))
        return Change(path, "put", draw({"put": values, "raw": raw, "swap": others}[how]))
    if how == "rename":
        return Change(path, how, draw(st.one_of(keys, odd.texts(nul=True))))
    if how == "add":
        tables = [place for place in places if isinstance(found(document, place), dict) and place]
        name = draw(st.one_of(keys, keys, odd.texts(nul=True)))
        return Change(draw(_fields(tables)), how, (name, draw(st.one_of(values, like(1, words), like(1.0, words)))))
    return Change(path, how)


@st.composite
def spreads(draw: Any, document: Any, word: str, fixed: Container[str]) -> tuple[Change, ...]:
    """Changes of some texts to a word, or to themselves with the word at their end, wherever they stand.

    What refers to each other still fits together, so that a page or a table is made of it. Fields that have a text of
    `fixed` remain.
    """
    texts = [path for path in paths(document) if path and isinstance(found(document, path), str)]
    free = [some for some in alike(texts) if not any(found(document, path) in fixed for path in some)]
    chosen = draw(st.lists(st.sampled_from(free).flatmap(st.sampled_from), min_size=1, max_size=10, unique=True))
    return tuple(Change(path, "spread", draw(st.sampled_from(["", found(document, path)])) + word) for path in chosen)


def _fields(places: Sequence[Path]) -> st.SearchStrategy[Path]:
    """Some of the places, so that each field is as likely as another, however many rows and entries have it."""
    return st.sampled_from(alike(places)).flatmap(st.sampled_from)


def alike(places: Iterable[Path]) -> list[list[Path]]:
    """Places field by field: all that differ in rows alone, or in names deep inside a field."""
    fields: dict[tuple[object, ...], list[Path]] = defaultdict(list)
    for path in places:
        names = [None if isinstance(name, int) else name for name in path]
        fields[*names[:3], len(path)].append(path)
    return [*fields.values()]


@st.composite
def _places(draw: Any, document: Any) -> Path:
    """Places that are found from above, so that a field is as likely as one beside it that holds long lists."""
    path: Path = ()
    while isinstance(document, dict | list) and document and (not path or draw(st.booleans())):
        names = [*document] if isinstance(document, dict) else range(len(document))
        path = (*path, draw(st.sampled_from(names)))
        document = document[path[-1]]
    return path


def found(document: Any, path: Path) -> Any:
    """The value at a place."""
    for name in path:
        document = document[name]
    return document


def as_json(document: Any) -> str:
    """A document as JSON, with the raw texts in it as they are."""
    text = json.dumps(document, indent=1)
    for raw in odd.RAW:
        text = text.replace(json.dumps(MARK + raw), raw)
    return text


@dataclass(frozen=True)
class Bytes:
    """A change of a file's bytes: `at` is a place as a share of its length.

    Attributes:
        how: flip (the bits of `mask` of one byte), cut (what is behind), insert or put (the bytes of `data`).
    """

    how: str
    at: float = 0.0
    mask: int = 0
    data: bytes = b""

    def apply(self, content: bytes) -> bytes:
        """The changed content."""
        place = min(int(self.at * len(content)), max(0, len(content) - 1))
        if self.how == "flip" and content:
            return content[:place] + bytes([content[place] ^ self.mask]) + content[place + 1 :]
        if self.how == "cut":
            return content[:place]
        return self.data if self.how == "put" else content[:place] + self.data + content[place:]


shares = st.floats(0, 1, exclude_max=True)
junk = st.one_of(
    st.sampled_from(
        [b"", b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"null", b"[]", b"PK\x03\x04", b"\x80\x04N.", b"{" * 5000]
    ),
    st.binary(max_size=20),
)
byte_changes = st.one_of(
    st.builds(Bytes, st.just("flip"), shares, st.integers(1, 255)),
    st.builds(Bytes, st.just("cut"), shares),
    st.builds(Bytes, st.just("insert"), shares, st.just(0), junk),
    st.builds(Bytes, st.just("put"), st.just(0.0), st.just(0), junk),
)
