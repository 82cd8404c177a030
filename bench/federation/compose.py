"""Methods made of parts: `dp-sgd+nnm+krum`, `delayed+label-flip`.

A defense is a protocol and an aggregation rule: PROTOCOL[+WRAPPER…+RULE]. Without a rule the protocol averages; without
a protocol (`krum`, `nnm+krum`) the rule aggregates FedAvg's uploads. In a rule's place there may be secure aggregation,
which averages uploads that the server does not see: PROTOCOL+SECURE. A poisoning attack may be wrapped:
WRAPPER+…+ATTACK.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedarena.contracts.aggregator import Aggregator, Wrapper
from fedarena.contracts.baseline import BASELINE
from fedarena.contracts.defense import Defense
from fedarena.contracts.inference import Inference
from fedarena.contracts.peers import Peers
from fedarena.contracts.poisoning import Around, AttackerKnowledge, Poisoning
from fedarena.contracts.secure_sum import SecureSum
from fedarena.core import registry
from fedarena.core.card import Card, Kind
from fedarena.core.did_you_mean import did_you_mean
from fedarena.core.errors import UserError, type_of
from fedarena.core.options import parse_options
from fedarena.core.threat import Knowledge
from fedarena.federation.foreign_attack import ForeignPoisoning, class_of
from fedarena.federation.spec import MethodSpec
from fedarena.problem.task import Auxiliary, Task


def defense_cards(text: str) -> tuple[Card, ...]:
    """The protocol's card, then those of wrappers and rule, or of secure aggregation. Raises UserError."""
    first, *rest = _split(text, "defense")
    protocols, parts = registry.registries()["defense"], [registry.registries()[kind] for kind in registry.PARTS]
    if first not in protocols:
        if not any(first in known for known in parts):
            known = [name for methods in (protocols, *parts) for name in methods.names()]
            raise UserError(f"unknown defense {first!r}{did_you_mean(first, known)}")
        first, rest = BASELINE, [first, *rest]
    for name in rest:
        if name in protocols:
            protocols.entry(name)  # raises where others claim the name, too
            raise UserError(
                f"option 'defense' is '{text}', but {name} is a protocol: a protocol comes first, and alone"
            )
    return (registry.find("defense", first), *(registry.find_part(name) for name in rest))


def attack_cards(text: str) -> tuple[Card, ...]:
    """The cards of wrappers and attack, outermost first. Raises UserError."""
    return tuple(registry.find("attack", name) for name in _split(text, "attack"))


def parse(cards: tuple[Card, ...], shared: Mapping[str, str], own: Mapping[str, Mapping[str, str]]) -> MethodSpec:
    """Options for every part.

    Args:
        shared: options that go to every part that has them (`--set defense.NAME=…`, `--set attack.NAME=…`).
        own: options by part (`--set krum.NAME=…`), which come first.

    Raises:
        UserError: an option that no part has.
    """
    fields = {card.name: set(card.options.__dataclass_fields__) for card in cards}
    for name in shared:
        if not any(name in known for known in fields.values()):
            card = cards[0]
            if len(cards) == 1:
                parse_options(card.options, {name: shared[name]}, f"{card.kind} {card.name}")
            known = sorted(set().union(*fields.values()))
            named = [part for part in fields if part != BASELINE]  # which nobody names beside a rule
            raise UserError(f"no part of {'+'.join(named)} has an option {name!r}{did_you_mean(name, known)}")
    parts = []
    for card in cards:
        given = {name: value for name, value in shared.items() if name in fields[card.name]}
        try:
            options = card.parse(given | dict(own.get(card.name, {})))
        except UserError as error:
            raise UserError(f"{error}{_alone(given, fields)}") from None
        parts.append(MethodSpec(card.name, options))
    return MethodSpec(parts[0].name, parts[0].options, tuple(parts[1:]))


def _alone(given: Mapping[str, str], fields: Mapping[str, set[str]]) -> str:
    """A hint how to set an option for one part, if several parts have it; else empty."""
    ways = [
        f"{name} goes to {' and '.join(having)}, {having[0]}.{name} to {having[0]} alone"
        for name in given
        if len(having := [part for part, known in fields.items() if name in known]) > 1
    ]
    return f" ({'; '.join(ways)})" if ways else ""


def parse_defense(text: str, options: Mapping[str, str] | None = None) -> MethodSpec:
    """A defense by name with options from text (NAME, or PART.NAME), for scripts and tests. Raises UserError."""
    return _parse_text(defense_cards(text), options or {})


def parse_attack(text: str, options: Mapping[str, str] | None = None) -> MethodSpec:
    """An attack by name with options from text (NAME, or PART.NAME), for scripts and tests. Raises UserError."""
    return _parse_text(attack_cards(text), options or {})


def _parse_text(cards: tuple[Card, ...], options: Mapping[str, str]) -> MethodSpec:
    own: dict[str, dict[str, str]] = {card.name: {} for card in cards}
    shared: dict[str, str] = {}
    for name, value in options.items():
        part, dot, rest = name.rpartition(".")
        if dot and part not in own:
            raise UserError(f"option {name!r} is of {part!r}, which is none of {', '.join(own)}")
        (own[part] if dot else shared)[rest] = value
    return parse(cards, shared, own)


def make_rule(parts: tuple[MethodSpec, ...]) -> Aggregator | None:
    """Wrappers around a rule; None without parts. Raises UserError for a chain that does not end in a rule."""
    rule: Aggregator | None = None
    for i, part in enumerate(reversed(parts)):
        method: Any = registry.find("aggregator", part.name).load()
        if issubclass(method, Wrapper):
            if rule is None:
                raise UserError(f"aggregator {part.name} wraps a rule: add one, such as {part.name}+krum")
            rule = method(part.options, rule)
        elif i:
            raise UserError(f"aggregator {part.name} is a rule, which takes nothing after it: put it last")
        else:
            rule = method(part.options)
    return rule


def make_defense(spec: MethodSpec, task: Task) -> Defense:
    """The protocol with its rule or secure aggregation. Raises UserError."""
    rule, secure = _ends(spec)
    method = registry.find("defense", spec.name).load()
    if issubclass(method, Peers):
        _require_no_server(spec, rule, secure)
    defense: Defense = method(spec.options, task, rule)
    return defense.secured(secure)


def _require_no_server(spec: MethodSpec, rule: Aggregator | None, secure: SecureSum | None) -> None:
    """Raise UserError where a part of a defense needs a server, of a protocol that has none."""
    needs = ""
    if secure is not None:
        needs = "shows a server the sum of uploads"
    elif rule is not None and rule.auxiliary:
        needs = "needs samples of a server"
    if needs:
        part = "+".join(one.name for one in spec.rest)
        raise UserError(
            f"option 'defense' is '{spec.label}', but {part} {needs}, and {spec.name} has no server; allowed with it: "
            "an aggregation rule that needs no samples of a server"
        )


def auxiliary(spec: MethodSpec) -> Auxiliary | None:
    """The samples that the server must hold for a defense: the protocol's own, or else its rule's."""
    own: Auxiliary | None = registry.find("defense", spec.name).load().holds(spec.options)
    if own is not None:
        return own
    rule, _ = _ends(spec)
    return Auxiliary(rule.auxiliary, option=rule.auxiliary_option) if rule is not None and rule.auxiliary else None


def _ends(spec: MethodSpec) -> tuple[Aggregator | None, SecureSum | None]:
    """How uploads are combined: by a rule, or by a secure sum. Raises UserError if both are named."""
    parts = [(part, registry.find_part(part.name)) for part in spec.rest]
    secure = [(part, card) for part, card in parts if card.kind == "secure"]
    if not secure:
        return make_rule(spec.rest), None
    (part, card), *_ = secure
    if len(parts) > 1:
        other = next(p.name for p, _ in parts if p is not part)
        raise UserError(
            f"option 'defense' is '{spec.label}', but {part.name} shows the server one sum, from which {other} "
            "cannot choose: leave one of them out"
        )
    sum_of_uploads: SecureSum = card.load()(part.options)
    return None, sum_of_uploads


def foreign(kind: Kind, method: MethodSpec | None) -> list[tuple[Kind, registry.Entry]]:
    """The parts of a defense or an attack that come from other packages: their kinds, and who claims their names."""
    return [(of, claim) for of, claim in added(kind, method) if claim.foreign]


def added(kind: Kind, method: MethodSpec | None) -> list[tuple[Kind, registry.Entry]]:
    """The parts that are not of this package: those of others, and of the user's session."""
    if method is None:
        return []
    parts = [
        (kind, method),
        *((registry.find_part(p.name).kind if kind == "defense" else kind, p) for p in method.rest),
    ]
    claims = [(kind, registry.registries()[kind].entry(part.name)) for kind, part in parts]
    return [(kind, claim) for kind, claim in claims if claim.origin != registry.BUILT_IN]


def attack_classes(spec: MethodSpec) -> list[Any]:
    """The classes of an attack's parts, outermost first; in place of other packages', classes that stand for them."""
    return [_attack_class(part.name) for part in (spec, *spec.rest)]


def _attack_class(name: str) -> Any:
    entry = registry.registries()["attack"].entry(name)
    if entry.seals("attack"):
        return class_of(entry)
    return registry.find("attack", name).load()


def attack_class(spec: MethodSpec) -> type[Inference] | type[Poisoning]:
    """The class of the attack itself, the last part. Raises UserError for a chain that is not allowed."""
    parts, (*around, last) = (spec, *spec.rest), attack_classes(spec)
    for part, method in zip(parts, around, strict=False):
        if not issubclass(method, Around):
            raise UserError(f"attack {part.name} wraps no other attack: put it last, or leave it out")
    if issubclass(last, Around):
        raise UserError(f"attack {parts[-1].name} wraps another attack: add one, such as {parts[-1].name}+label-flip")
    if around and issubclass(last, Inference):
        raise UserError(f"attack {parts[-1].name} does not poison, so {parts[0].name} cannot wrap it")
    if around:
        for i, (part, method) in enumerate(zip(parts, (*around, last), strict=True)):
            wrappers = {p.name: wrapper for p, wrapper in zip(parts[:i], around, strict=False)}
            _refuse_idle_tuning(part, method, wrappers)
    attack: type[Inference] | type[Poisoning] = last
    return attack


def _refuse_idle_tuning(part: MethodSpec, method: type[Poisoning], around: Mapping[str, type[Around]]) -> None:
    """Raise UserError if an attack tunes only the length of uploads, and a wrapper fixes that length."""
    fixing = [name for name, wrapper in around.items() if not wrapper.keeps_length]
    if getattr(part.options, "tune", 0) and fixing and method.tunes and set(method.tunes) <= set(method.only_length):
        raise UserError(
            f"option 'tune' is {part.options.tune}, allowed for {part.name} inside {fixing[0]}: 0, because "
            f"{', '.join(method.tunes)} only changes the length of uploads, which {fixing[0]} fixes"
        )


def knowledge_levels(spec: MethodSpec) -> tuple[Knowledge, ...]:
    """The knowledge levels of a poisoning attack: its own, and `omniscient` if a wrapper makes use of it."""
    *around, last = attack_classes(spec)
    levels: tuple[Knowledge, ...] = last.knowledge_levels
    more = any("omniscient" in wrapper.knowledge_levels for wrapper in around)
    return levels if "omniscient" in levels or not more else (*levels, "omniscient")


def trigger_of(spec: MethodSpec | None) -> MethodSpec | None:
    """The attack if it has a trigger, which can be tried on a model that it has not poisoned; else None."""
    return spec if spec is not None and attack_classes(spec)[-1].trigger is not Poisoning.trigger else None


def make_inference(spec: MethodSpec) -> Inference:
    """An inference attack with its options."""
    attack: Inference = _attack_class(spec.name)(spec.options)
    return attack


def make_poisoning(spec: MethodSpec, knowledge: AttackerKnowledge) -> Poisoning:
    """The corrupted clients' attack with its wrappers. Raises UserError; and ToldByProcess for another package's."""
    if any(registry.registries()["attack"].entry(part.name).seals("attack") for part in (spec, *spec.rest)):
        return ForeignPoisoning(spec, knowledge)
    *around, (last, method) = zip((spec, *spec.rest), attack_classes(spec), strict=True)
    attack: Poisoning = method(last.options, knowledge)
    for part, wrapper in reversed(around):
        attack = wrapper(part.options, knowledge, attack)
    return attack


def _split(text: str, kind: str) -> list[str]:
    if not isinstance(text, str):
        raise UserError(f"option '{kind}' is {type_of(text)}, allowed: NAME or NAME+NAME")
    names = [name.strip() for name in text.split("+")]
    if not all(names):
        raise UserError(f"option '{kind}' is '{text}', which is not NAME or NAME+NAME")
    if len(set(names)) < len(names):
        raise UserError(f"option '{kind}' is '{text}', which names a part twice")
    return names
