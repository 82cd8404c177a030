"""Whether a method keeps the laws of its kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fedarena.core import plugin_file, registry
from fedarena.core.card import KINDS, Card, Kind, import_card
from fedarena.core.did_you_mean import did_you_mean
from fedarena.core.errors import ToldByProcess, UserError, describe, line_of_method, place_of
from fedarena.core.files import resolved
from fedarena.core.options import to_text
from fedarena.runs.own_objects import card_of_class
from fedarena.testing import (
    card_laws,
    data_laws,
    defense_laws,
    device_laws,
    model_laws,
    poisoning_laws,
    privacy_laws,
    rule_laws,
    secure_laws,
)
from fedarena.testing.law import LAWS, Law, LawBroken, LawIdle, Method

MODULES = (
    card_laws,
    defense_laws,
    rule_laws,
    secure_laws,
    privacy_laws,
    poisoning_laws,
    data_laws,
    model_laws,
    device_laws,
)
"""The files of laws, in the order in which these are tried."""
ALL = tuple(law for module in MODULES for law in LAWS if law.hold.__module__ == module.__name__)


@dataclass(frozen=True)
class Outcome:
    """What became of one law.

    Attributes:
        kind, method: the method.
        law, says: the law, and its text.
        status: holds, broken, or n/a where the law says nothing about the method.
        reason: why it is n/a; how the law is broken and what to do; empty where it holds.
        error: the exception behind a broken law.
    """

    kind: Kind
    method: str
    law: str
    says: str
    status: Literal["holds", "broken", "n/a"]
    reason: str = ""
    error: LawBroken | None = None


def check(
    method: Any, *, laws: Sequence[str] | None = None, data_dir: str | Path | None = None, **options: Any
) -> list[Outcome]:
    """Check that a method keeps the laws of its kind, like scikit-learn's `check_estimator`.

    The method's code runs in this process. A check takes seconds; of an attack that searches, minutes.

    Args:
        method: a card; a class of a defense, a rule, an attack, …; a name that `bench list` prints; or a file with
            cards (a path, or a text that ends in .py), all of which are checked.
        laws: the names of the laws to check (`laws` lists them); None: all of the kind.
        data_dir: of data sets, where files are looked for.
        options: the method's own options. Others stand at their defaults.

    Returns:
        One outcome for each law, none of which is broken.

    Raises:
        LawBroken: the first law that is broken, with the method, the figure, and what to do.
        UserError: no such method, law or option.
    """
    outcomes = []
    for outcome in examine(method, laws=laws, data_dir=data_dir, options=options):
        if outcome.error is not None:
            raise outcome.error
        outcomes.append(outcome)
    return outcomes


def examine(
    method: Any,
    *,
    laws: Sequence[str] | None = None,
    data_dir: str | Path | None = None,
    options: Mapping[str, Any] | None = None,
) -> Iterator[Outcome]:
    """Every outcome as soon as it is known, broken laws included. Arguments and UserError are those of `check`."""
    cards, wanted = list(cards_of(method)), None if laws is None else _named(laws)
    texts = {name: value if isinstance(value, str) else to_text(value) for name, value in (options or {}).items()}
    methods = [Method(card, card.parse(texts), data_dir=None if data_dir is None else Path(data_dir)) for card in cards]
    return (outcome_of(law, one) for one in methods for law in _laws_of(one, wanted))


def laws(kind: str | None = None) -> dict[str, str]:
    """The laws of one kind of methods, or of all kinds: name → the law in one sentence. Raises UserError."""
    if kind is not None and kind not in KINDS:
        raise UserError(f"unknown kind {kind!r}, allowed: {', '.join(KINDS)}")
    return {law.name: law.says for law in ALL if kind is None or kind in law.kinds}


def outcome_of(law: Law, method: Method) -> Outcome:
    """What becomes of a law."""
    about: Mapping[str, Any] = {
        "kind": method.card.kind,
        "method": method.card.name,
        "law": law.name,
        "says": law.says,
    }
    try:
        law.hold(method)
    except LawIdle as idle:
        return Outcome(**about, status="n/a", reason=str(idle))
    except LawBroken as broken:
        told = LawBroken(broken.figure, broken.remedy, law.name, law.says, method.name)
        told.__cause__ = broken.__cause__
    except (UserError, ToldByProcess) as error:  # which says what is allowed
        told = LawBroken(describe(error), "give what is allowed", law.name, law.says, method.name)
        told.__cause__ = error
    except Exception as error:  # the method's own code
        figure, remedy = f"it raises {describe(error)}", "mend that line"
        if not line_of_method(error):  # all lines are those of a library
            figure, remedy = f"{place_of(method.target)} leads to {describe(error, anywhere=False)}", "mend it"
        told = LawBroken(figure, remedy, law.name, law.says, method.name)
        told.__cause__ = error
    else:
        return Outcome(**about, status="holds")
    return Outcome(**about, status="broken", reason=f"{told.figure}. To do: {told.remedy}.", error=told)


def _laws_of(method: Method, wanted: Iterable[str] | None) -> Iterator[Law]:
    """The laws that are about a method, or the wanted ones of these."""
    for law in ALL:
        if method.card.kind in law.kinds and (wanted is None or law.name in wanted) and law.concerns(method):
            yield law


def _named(laws: Sequence[str]) -> tuple[str, ...]:
    """The names of laws. Raises UserError for an unknown one."""
    known = [law.name for law in ALL]
    for name in laws:
        if name not in known:
            raise UserError(f"unknown law {name!r}{did_you_mean(name, known)}")
    return tuple(laws)


def cards_of(method: Any) -> Iterator[Card]:
    """The cards of a method, which can be imported here. Raises UserError."""
    if isinstance(method, Card):
        yield method
    elif isinstance(method, Path) or (isinstance(method, str) and method.endswith(".py")):
        place = resolved(method)
        plugin_file.renew()
        for claim in plugin_file.claims_of(place):
            yield import_card(claim.target, f"{claim.kind} '{claim.name}' of {claim.file}")
    elif isinstance(method, str):
        yield from _registered(method)
    else:
        yield card_of_class(method)


def _registered(name: str) -> Iterator[Card]:
    """The cards of a name, also of other packages' attacks. Raises UserError."""
    found = [methods.entry(name) for methods in registry.registries().values() if name in methods.names()]
    if not found:
        registry.find_any(name)  # which says what is meant
    for entry in found:
        yield (
            entry.held if isinstance(entry, registry.Held) else import_card(entry.target, f"'{name}' of {entry.origin}")
        )
