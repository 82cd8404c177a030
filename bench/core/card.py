"""Method cards: what `bench list` and `bench show` print.

A card is light: it imports neither torch nor scikit-learn, so that listing a hundred methods stays
instant. The implementation is named by `target` ("package.module:attribute") and imported on use.

    CARD = Card(name="dbcl", kind="defense", target="fedarena.defenses.dbcl.protocol:DBCL", options=Options, ...)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any, Literal, get_args, get_origin, get_type_hints

from fedarena.core.contract import require_contract, require_function
from fedarena.core.errors import UserError, line_of_method, text_of, type_of
from fedarena.core.options import NoOptions, check_declaration, parse_options

Kind = Literal["defense", "aggregator", "secure", "attack", "dataset", "model", "partition"]
KINDS: tuple[Kind, ...] = ("defense", "aggregator", "secure", "attack", "dataset", "model", "partition")

CONTRACTS: Mapping[Kind, tuple[str, ...]] = {
    "defense": ("fedarena.contracts.defense:Defense",),
    "aggregator": ("fedarena.contracts.aggregator:Wrapper", "fedarena.contracts.aggregator:Aggregator"),
    "secure": ("fedarena.contracts.secure_sum:SecureSum",),
    "attack": (
        "fedarena.contracts.active_inference:ActiveInference",
        "fedarena.contracts.inference:Inference",
        "fedarena.contracts.poisoning:Around",
        "fedarena.contracts.poisoning:Poisoning",
    ),
    "model": ("fedarena.models.architecture:Architecture",),
}
"""Kind → the contracts, of which an implementation is a subclass of one. The narrower ones stand first."""
FUNCTIONS: Mapping[Kind, tuple[str, ...]] = {
    "dataset": ("data_dir",),
    "partition": ("labels", "n_clients", "rng", "options"),
}
"""Kind → what an implementation takes that is a function."""

NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
NONE = "none"
"""What records have in the place of a method's name where there is no method."""
FROM_LIBRARY = re.compile(r"[a-z0-9]+:[A-Za-z_][\w.]*")
"""LIBRARY:CLASS, the name of a class of another library (`fedarena.core.registry`)."""


@dataclass(frozen=True)
class Card:
    """What a method is, where it comes from, and what it departs from.

    Attributes:
        name: registry name, lower case with hyphens; or LIBRARY:CLASS.
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
        form: of attacks: `adaptive` if the attack is adapted to the defense, `paper` if it is not, `both` if it has
            both forms.
        goal: of attacks: what it is after, a name of `fedarena.contracts.goal_names` or `poisoning`.
        usual: the default problem of the method, as (flag, schedule option or model.OPTION, value). Attacks, protocols
            that need a certain problem, and data sets declare one. A later one of these replaces an earlier one.
        aliases: other names in use, lower case with hyphens. The error for an alias names the method.
        guarantees: of defenses, how the numbers of `Defense.guarantees` are printed, as (name, text before the value).
        promises: of defenses, the same numbers in words, as groups of alternatives. A name in braces stands for its
            number. Of each group the first text is printed whose numbers a run has. Without groups the numbers are
            printed one by one, as `guarantees` says.
        verdicts: of defenses, how the protocol's own values of uploads are printed (`State.verdict`), as (name, text).
            Each value is 1 for an upload that the text applies to and 0 for another.

    Raises:
        ValueError, TypeError: a field is not as described here; `bench list` shows the card's plug-in as broken.
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
    goal: str = ""
    usual: tuple[tuple[str, str], ...] = ()
    aliases: tuple[str, ...] = ()
    guarantees: tuple[tuple[str, str], ...] = ()
    promises: tuple[tuple[str, ...], ...] = ()
    verdicts: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        for name, hint in _hints().items():
            if not _fits(getattr(self, name), hint):
                raise TypeError(f"{name} is {type_of(getattr(self, name))}, allowed: {self.__annotations__[name]}")
        if self.kind not in KINDS:
            raise ValueError(f"kind is {self.kind!r}, allowed: {', '.join(KINDS)}")
        if not NAME.fullmatch(self.name) and not FROM_LIBRARY.fullmatch(self.name):
            raise ValueError(f"name is {self.name!r}, allowed: lower-case words joined by hyphens")
        if self.name == NONE:
            raise ValueError(f"name is {NONE!r}, which means that there is no method, allowed: another one")
        for alias in self.aliases:
            if not NAME.fullmatch(alias):
                raise ValueError(f"an alias is {alias!r}, allowed: lower-case words joined by hyphens")
        if self.version < 1:
            raise ValueError(f"version is {self.version}, allowed: 1 or more")
        check_declaration(self.options)

    def load(self) -> Any:
        """Import and return the implementation.

        Raises:
            UserError: it cannot be imported, or does not keep the contract of its kind.
        """
        made = self.target
        if isinstance(made, str):
            made = import_target(made, f"{self.kind} '{self.name}' ({made})")
        if names := CONTRACTS.get(self.kind):
            require_contract(self.kind, made, tuple(import_target(name, name) for name in names))
        if self.kind in FUNCTIONS:
            require_function(self.kind, made, FUNCTIONS[self.kind])
        return made

    def parse(self, given: Mapping[str, str]) -> Any:
        """Options from text, as on the command line; see `parse_options`."""
        return parse_options(self.options, given, f"{self.kind} {self.name}")


@cache
def _hints() -> Mapping[str, Any]:
    """The types of a card's fields. `check_declaration` is about its options, and `Card.load` about its target."""
    return {name: hint for name, hint in get_type_hints(Card).items() if name not in ("kind", "target", "options")}


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is of a field's type; a list will do for a tuple."""
    inner = get_args(hint)
    if get_origin(hint) is Literal:
        return value in inner
    if get_origin(hint) is not tuple:
        return any(type(value) is one for one in inner or (hint,))
    if not isinstance(value, tuple | list):
        return False
    types = inner[:1] * len(value) if inner[-1] is ... else inner
    return len(types) == len(value) and all(map(_fits, value, types))


def import_card(target: str, where: str) -> Card:
    """Import a card. Raises UserError where it cannot be imported, or is none."""
    card = import_target(target, where)
    if not isinstance(card, Card):
        raise UserError(f"{where} is {type_of(card)}, not a fedarena.core.card.Card")
    return card


def import_target(target: str, owner: str) -> Any:
    """Import "module:attribute". Raises UserError with a message of one line for any error of the import."""
    module, _, attribute = target.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except KeyboardInterrupt:  # whoever interrupts this process means all of it
        raise
    except BaseException as error:  # foreign code may fail in any way while it is imported
        why, line = " ".join(f"{type(error).__name__}: {text_of(error)}".split()), line_of_method(error)
        raise UserError(f"{owner} cannot be loaded: {why}{f' (in {line})' if line else ''}") from error
