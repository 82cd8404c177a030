"""Names → method cards: built-in ones, and third parties' through entry points.

A third party's package declares, in its pyproject.toml,

    [project.entry-points."fedarena.defenses"]
    mine = "my_package.card:CARD"

and `bench run --defense mine` finds it. The groups are `fedarena.defenses`, `fedarena.aggregators`,
`fedarena.secures`, `fedarena.attacks`, `fedarena.datasets`, `fedarena.models` and `fedarena.partitions`.
Two claims on one name are an error that names both; an unknown name is an error with the closest matches;
a plug-in whose card cannot be imported is listed as broken, and using it says why. A single file can hold cards, too
(`fedarena.core.plugin_file`).

A class of another library is a method by the name LIBRARY:CLASS. Its card is made when it is asked for, by the function
that `fedarena.interop.LIBRARIES` names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import distributions, entry_points
from typing import Any

from fedarena.core import foreign_card, plugin_file
from fedarena.core.card import KINDS, Card, Kind, import_card, import_target
from fedarena.core.did_you_mean import did_you_mean
from fedarena.core.errors import UserError
from fedarena.core.method_caches import forget_methods, method_cache
from fedarena.core.request_loop import is_fresh

BUILT_IN = "fedarena"
"""The origin of the methods of this package."""
SESSION = "this session"
"""The origin of objects that the user of this process has handed over."""


@dataclass(frozen=True)
class Entry:
    """One claim on a name.

    Attributes:
        name: the registry name.
        target: "module:attribute" of the card.
        origin: who claims it: `BUILT_IN`, the distribution of a plug-in, or a plug-in's file.
    """

    name: str
    target: str
    origin: str

    @property
    def foreign(self) -> bool:
        """Whether the method is another package's, which may mean to cheat."""
        return self.origin not in (BUILT_IN, SESSION)

    def seals(self, kind: Kind) -> bool:
        """Whether the method is another package's attack, and this process must not import it."""
        return kind == "attack" and self.foreign and not is_fresh()

    def card(self, kind: Kind) -> Card:
        """The card. Raises UserError when the plug-in is broken or its card does not fit its claim."""
        where = f"{kind} '{self.name}' of {self.origin} ({self.target})"
        sealed = self.seals(kind)
        card = foreign_card.read(self.target, where, attack_options) if sealed else import_card(self.target, where)
        if (card.kind, card.name) != (kind, self.name):
            raise UserError(f"{where} holds the card of {card.kind} '{card.name}'")
        return card


@dataclass(frozen=True)
class Held(Entry):
    """A method whose card is at hand: an object of the user's session, or a class of another library.

    Attributes:
        held: the card.
        source: the class or the function whose hash is the card's version; None: the version is its author's.
    """

    held: Card
    source: Any = None

    def card(self, kind: Kind) -> Card:
        return self.held


@dataclass(frozen=True)
class Library:
    """Another library, whose classes are methods by the name LIBRARY:CLASS.

    Attributes:
        kind: of the methods.
        maker: "module:attribute" of a function that makes a `Held` of such a name, or raises UserError.
        distribution: the package that is to be installed.
    """

    kind: Kind
    maker: str
    distribution: str


_held: dict[tuple[Kind, str], Held] = {}


def hold(card: Card, source: Any = None) -> None:
    """Make a card of this session known, in place of an earlier one of its name. Raises UserError for a name in use.

    Args:
        source: see `Held`.
    """
    if (other := _claimed(card.kind, card.name)) is not None:
        raise UserError(f"{other} '{card.name}' is claimed by {_origin(other, card.name)}: choose another name")
    for kind in beside(card.kind):
        _held.pop((kind, card.name), None)
    _held[card.kind, card.name] = Held(card.name, "an object", SESSION, card, source)
    forget_methods()


def held() -> list[Held]:
    """The objects of this session."""
    return list(_held.values())


def free_name(kind: Kind, name: str) -> str:
    """A name for an object whose user gave it none: this one, or own-NAME where another method has it."""
    return name if _claimed(kind, name) is None else f"own-{name}"


def beside(kind: Kind) -> tuple[Kind, ...]:
    """The kinds that share their names with one: a protocol, a rule and a secure sum stand in the same place."""
    return DEFENDING if kind in DEFENDING else (kind,)


def _claimed(kind: Kind, name: str) -> Kind | None:
    """The kind of a method that has the name and is none of this session's."""
    if any((other, name) in _held for other in beside(kind)):
        return None
    return next((other for other in beside(kind) if name in registries()[other].names()), None)


def _origin(kind: Kind, name: str) -> str:
    return registries()[kind].claims(name)[0].origin


def held_in(text: str) -> bool:
    """Whether a name, or one of PART+PART, is that of an object of this session, which other processes do not know."""
    return any(name in text.split("+") for _, name in _held)


@contextmanager
def lent(card: Card) -> Iterator[None]:
    """Within the block the card is one of this session's, whoever else claims its name."""
    key, before = (card.kind, card.name), dict(_held)
    _held[key] = Held(card.name, "an object", SESSION, card)
    forget_methods()
    try:
        yield
    finally:
        _held.clear()
        _held.update(before)
        forget_methods()


class Registry:
    """The methods of one kind.

    Args:
        rivals: methods of other kinds that share their names with this one (`beside`).
    """

    def __init__(self, kind: Kind, entries: Iterable[Entry], rivals: Iterable[Entry] = ()) -> None:
        self.kind = kind
        self._entries: dict[str, Entry] = {}
        self._collisions: dict[str, list[Entry]] = {}
        for entry in entries:
            first = self._entries.setdefault(entry.name, entry)
            if first != entry:
                self._collisions.setdefault(entry.name, [first]).append(entry)
        for entry in rivals:
            if (own := self._entries.get(entry.name)) is not None:
                self._collisions.setdefault(entry.name, [own]).append(entry)

    def names(self) -> list[str]:
        """All names, sorted."""
        return sorted(self._entries)

    def entry(self, name: str) -> Entry:
        """The claim on a name. Raises UserError for unknown and for contested names."""
        if name not in self._entries and self._of_library(name):
            return from_library(name)
        if name in self._collisions:
            claims = " and ".join(f"{e.origin} ({e.target})" for e in self._collisions[name])
            files = {claim.file for claim in plugin_file.claims()} & {e.origin for e in self._collisions[name]}
            mend = f"choose another name in {min(files)}" if files else "uninstall one of them"
            raise UserError(f"{self.kind} '{name}' is claimed by {claims}: {mend}")
        if name not in self._entries:
            raise UserError(f"unknown {self.kind} {name!r}{did_you_mean(name, self._entries, self.aliases())}")
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        """Whether a name is that of a method, or of a library whose classes are methods of this kind."""
        return name in self._entries or self._of_library(str(name))

    def _of_library(self, name: str) -> bool:
        """Whether a name is LIBRARY:CLASS, with a library whose classes are methods of this kind."""
        library, colon, _ = name.partition(":")
        return bool(colon) and library in libraries() and libraries()[library].kind == self.kind

    def aliases(self) -> dict[str, str]:
        """Aliases of methods → their names. Cards that cannot be read have none."""
        by_alias: dict[str, str] = {}
        for name in self.names():
            with suppress(UserError):
                by_alias |= dict.fromkeys(self.card(name).aliases, name)
        return by_alias

    def card(self, name: str) -> Card:
        """The card of a method. Raises UserError."""
        return self.entry(name).card(self.kind)

    def claims(self, name: str) -> list[Entry]:
        """All claims on a name. If there is more than one, the name cannot be used."""
        return self._collisions.get(name) or [e for e in self._entries.values() if e.name == name]


Plugins = Callable[[str], Iterable[Entry]]


@method_cache
def _entry_points() -> Any:
    """The entry points of all groups, which takes as long to read as those of one."""
    return entry_points()


def installed_plugins(group: str) -> list[Entry]:
    """The entry points of one group in this environment, and the cards in files."""
    points = _entry_points().select(group=group)
    names = [e.dist.name if e.dist else "an unnamed distribution" for e in points]
    # Nobody becomes trusted by a name.
    origins = [f"another distribution named {name}" if name == BUILT_IN else name for name in names]
    in_files = [Entry(c.name, c.target, c.file) for c in plugin_file.claims() if f"fedarena.{c.kind}s" == group]
    return [*(Entry(e.name, e.value, origin) for e, origin in zip(points, origins, strict=True)), *in_files]


def build(plugins: Plugins = installed_plugins) -> Mapping[Kind, Registry]:
    """One registry a kind: the built-in methods, then the plug-ins."""
    entries: dict[Kind, list[Entry]] = {}
    for kind in KINDS:
        builtin = import_module(f"fedarena.{_PACKAGES[kind]}").CARDS
        mine = {name: held for (of, name), held in _held.items() if of in beside(kind)}
        known = [*(Entry(name, target, BUILT_IN) for name, target in builtin.items()), *plugins(f"fedarena.{kind}s")]
        entries[kind] = [entry for entry in known if entry.name not in mine]
        entries[kind] += [held for held in mine.values() if held.held.kind == kind]
    return {
        kind: Registry(kind, entries[kind], [e for other in beside(kind) if other != kind for e in entries[other]])
        for kind in KINDS
    }


@method_cache
def registries() -> Mapping[Kind, Registry]:
    """The registries of this environment, read once, and again after methods have changed."""
    return build()


def foreign_packages() -> set[str]:
    """The packages beside this one that hold methods."""
    entries = [entry for known in registries().values() for name in known.names() for entry in known.claims(name)]
    return {entry.target.partition(":")[0].partition(".")[0] for entry in entries if entry.foreign} - {BUILT_IN}


def find(kind: Kind, name: str) -> Card:
    """The card of a method by kind and name. Raises UserError."""
    return registries()[kind].card(name)


def libraries() -> Mapping[str, Library]:
    """Other libraries, by the prefix of their names."""
    found: Mapping[str, Library] = import_module("fedarena.interop").LIBRARIES
    return found


def releases_in(text: str) -> list[tuple[str, str]]:
    """(distribution, release) of the libraries whose classes a text names; the release is empty if not installed."""
    used = [library.distribution for prefix, library in libraries().items() if f"{prefix}:" in text]
    return [(name, next(iter(distribution.version for distribution in distributions(name=name)), "")) for name in used]


@cache
def from_library(name: str) -> Held:
    """The method that a class of another library is. Raises UserError where there is no such class."""
    maker = libraries()[name.partition(":")[0]].maker
    held: Held = import_target(maker, maker)(name)
    return held


def options_of(kind: Kind, name: str, values: Mapping[str, Any]) -> Any:
    """Options of a method. Raises UserError."""
    return find(kind, name).options(**values)


def attack_options(name: str, values: Mapping[str, Any]) -> Any:
    """Options of an attack."""
    return options_of("attack", name, values)


def find_part(name: str) -> Card:
    """The card of a part that may follow a protocol: a rule, its wrapper, or secure aggregation. Raises UserError."""
    kinds = [kind for kind in PARTS if name in registries()[kind]]
    if not kinds:
        known = [n for kind in PARTS for n in registries()[kind].names()]
        raise UserError(f"unknown aggregator {name!r}{did_you_mean(name, known)}")
    return find(kinds[-1], name)


def find_any(name: str) -> list[Card]:
    """All cards of that name, of any kind. Raises UserError when there is none."""
    cards = [r.card(name) for r in registries().values() if name in r]
    if not cards:
        known = [n for r in registries().values() for n in r.names()]
        raise UserError(f"unknown method {name!r}{did_you_mean(name, known, all_aliases())}")
    return cards


def all_aliases() -> dict[str, str]:
    """`Registry.aliases` of every kind."""
    return {alias: name for r in registries().values() for alias, name in r.aliases().items()}


PARTS: tuple[Kind, ...] = ("aggregator", "secure")
"""Kinds of parts that may follow a protocol in a defense's name."""
DEFENDING: tuple[Kind, ...] = ("defense", *PARTS)
"""Kinds whose methods a defense's name may begin with."""

_PACKAGES: Mapping[Kind, str] = {
    "defense": "defenses",
    "aggregator": "defenses.aggregators",
    "secure": "defenses.secure",
    "attack": "attacks",
    "dataset": "datasets",
    "model": "models",
    "partition": "datasets.partitions",
}
