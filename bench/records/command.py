"""A record → the command that makes it anew."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from fedarena.core import registry
from fedarena.core.card import Card, Kind
from fedarena.core.errors import UserError
from fedarena.core.option_values import to_text
from fedarena.core.threat import EVERYONE, FORMS
from fedarena.problem.schedule import Schedule
from fedarena.records.schema import Record


def command_of(record: Record, seeds: str | None = None) -> str:
    """`bench run …` with every option that is not its default.

    A run in which nobody attacks is part of every command with its defense; it is given here beside label-flip where
    clients can be corrupted, which writes the same record, else beside the estimate of gradients, whose records are
    others and say the same of the run.

    Args:
        seeds: in place of the record's own, such as "0,1,2".
    """
    problem, options = record["problem"], record["options"]
    attack = record["attack"]
    if attack == "none":
        attack = "label-flip" if problem["corrupted"] else "gradient-estimate"
    words = ["bench", "run", "--defense", record["defense"], "--attack", attack]
    words += ["--model", problem["model"], "--partition", problem["partition"]]
    words += ["--clients", str(problem["clients"]), "--dataset", problem["dataset"]]
    if problem["corrupted"]:
        words += ["--corrupted", str(problem["corrupted"])]
        if problem["corrupted_data"] != "shard":
            words += ["--corrupted-data", problem["corrupted_data"]]
    if problem["assumed_corrupted"] != (problem["corrupted"] or problem["clients"] // 5):
        words += ["--assumed-corrupted", str(problem["assumed_corrupted"])]
    if record["attacker_knowledge"]:
        words += ["--knows", record["attacker_knowledge"]]
    elif record["party"]:
        words += ["--party", _asked(record, "party", EVERYONE), "--form", _asked(record, "form", FORMS)]
    if problem["device"] != "cpu":
        words += ["--device", problem["device"]]
    usual = _usual(record, attack)
    for group, values in options.items():
        if group != "probe":
            words += _settings(record, group, values, usual if group == "training" else {})
    return shlex.join([*words, "--seeds", seeds or str(record["seed"])])


def _asked(record: Record, what: Literal["party", "form"], words: Sequence[str]) -> str:
    """The record's own, and those for which alone options are that it has: without them these would be refused."""
    asked, given = {record[what]}, record["options"].get("attack", {})
    if record["attack"] in registry.registries()["attack"].names():
        fields = dataclasses.fields(registry.find("attack", record["attack"]).options)
        asked |= {f.metadata[what] for f in fields if _given(given.get(f.name, f.default)) != f.default}
    return ",".join(word for word in words if word in asked)


def _settings(record: Record, group: str, values: Mapping[str, Any], usual: Mapping[str, str]) -> list[str]:
    """`--set GROUP.OPTION=VALUE` for what is not the default, or where a card would put something else."""
    defaults = _defaults(record, group)
    where = group.partition("+")[2] or group
    words = []
    for name, value in values.items():
        given = _given(value)
        if name in usual or defaults.get(name, given) != given or name not in defaults:
            words += ["--set", f"{where}.{name}={to_text(given)}"]
    return words


def _given(value: Any) -> Any:
    """A record's value as options have it: JSON has no tuples."""
    return tuple(value) if isinstance(value, list) else value


def _defaults(record: Record, group: str) -> dict[str, Any]:
    if group == "training":
        return dataclasses.asdict(Schedule())
    kind, _, part = group.partition("+")
    names = {
        "defense": record["defense"].split("+")[0],
        "attack": record["attack"].split("+")[0],
        "model": record["problem"]["model"],
        "partition": record["problem"]["partition"],
    }
    try:
        if part:
            card = registry.find_part(part) if kind == "defense" else registry.find("attack", part)
        elif kind == "defense":
            known = registry.registries()["defense"].names()
            card = registry.find("defense", names["defense"] if names["defense"] in known else "fedavg")
        else:
            card = registry.find(_kind(kind), names[kind])
    except UserError:  # a plug-in that is not installed here: every option is given
        return {}
    return dataclasses.asdict(card.options())


def _kind(group: str) -> Kind:
    kinds: dict[str, Kind] = {"attack": "attack", "model": "model", "partition": "partition"}
    return kinds[group]


def _usual(record: Record, attack: str) -> dict[str, str]:
    """What cards would put in the place of the schedule's defaults."""
    cards: list[Card] = []
    first = record["defense"].split("+")[0]
    for kind, name in (
        ("attack", attack.split("+")[-1]),
        ("defense", first),
        ("dataset", record["problem"]["dataset"]),
    ):
        if name in registry.registries()[kind].names():  # type: ignore[index]
            cards.append(registry.find(kind, name))  # type: ignore[arg-type]
    return {name: value for card in cards for name, value in card.usual}
