"""The shell command that measures a record again: `bench run …` with every option that is not its default."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from fedarena.contracts.baseline import BASELINE
from fedarena.core import registry
from fedarena.core.card import Card, Kind
from fedarena.core.errors import UserError
from fedarena.core.options import to_text
from fedarena.core.threat import FORMS, READERS
from fedarena.problem.schedule import Schedule
from fedarena.records.schema import ProblemSetting, Record

BESIDE_CORRUPTED, BESIDE_HONEST = "label-flip", "gradient-estimate"
"""The attack in the command of a run without an attack: where clients can be corrupted, and where they cannot."""


def command_of(record: Record, seeds: str | None = None) -> str:
    """The command.

    `bench run` has no attack `none`: every command also runs its defense without an attack. Where clients can be
    corrupted, the command with `BESIDE_CORRUPTED` writes this very record. Elsewhere the records of the command with
    `BESIDE_HONEST` say the same of the run.

    Args:
        seeds: seeds such as "0,1,2", in place of the record's own.
    """
    attack = record["attack"]
    if attack == "none":
        attack = BESIDE_CORRUPTED if record["problem"]["corrupted"] else BESIDE_HONEST
    words = ["bench", "run", "--defense", record["defense"], "--attack", attack]
    words += [*_of_problem(record["problem"]), *_of_threat(record)]
    if record["problem"]["device"] != "cpu":
        words += ["--device", record["problem"]["device"]]
    usual = _usual(record, attack)
    if record["problem"]["corrupted"]:
        usual.setdefault("eval_every", "")  # where clients are corrupted, its default depends on the rounds
    for group, values in record["options"].items():
        if group != "probe":
            words += _settings(record, group, values, usual if group == "training" else {})
    words += ["--secret", record["secret"]] if "secret" in record else []
    words += ["--other-rounds"] if "other_rounds" in record else []
    files = {origin.split(" (")[0] for origin in record["origins"].values()}
    words += [word for file in sorted(files) if file.endswith(".py") for word in ("--plugin", file)]
    return shlex.join([*words, "--seeds", seeds or str(record["seed"])])


def _of_problem(problem: ProblemSetting) -> list[str]:
    words = ["--model", problem["model"], "--partition", problem["partition"]]
    words += ["--clients", str(problem["clients"]), "--dataset", problem["dataset"]]
    if problem["corrupted"]:
        words += ["--corrupted", str(problem["corrupted"])]
        if problem["corrupted_data"] != "shard":
            words += ["--corrupted-data", problem["corrupted_data"]]
    if problem["assumed_corrupted"] != (problem["corrupted"] or problem["clients"] // 5):
        words += ["--assumed-corrupted", str(problem["assumed_corrupted"])]
    return words


def _of_threat(record: Record) -> list[str]:
    if record["attacker_knowledge"]:
        return ["--knows", record["attacker_knowledge"]]
    if record["party"]:
        return ["--party", _chosen(record, "party", READERS), "--form", _chosen(record, "form", FORMS)]
    return []


def _chosen(record: Record, field: Literal["party", "form"], choices: Sequence[str]) -> str:
    """The record's own party or form, and those that an option of the record needs: without them the option would be
    refused."""
    chosen, options = {record[field]}, record["options"].get("attack", {})
    if record["attack"] in registry.registries()["attack"]:
        fields = dataclasses.fields(registry.find("attack", record["attack"]).options)
        chosen |= {f.metadata[field] for f in fields if _with_tuples(options.get(f.name, f.default)) != f.default}
    return ",".join(choice for choice in choices if choice in chosen)


def _settings(record: Record, group: str, values: Mapping[str, Any], usual: Mapping[str, str]) -> list[str]:
    """`--set GROUP.OPTION=VALUE` for each value that is not the default, or whose default a card changes."""
    defaults = _defaults(record, group)
    prefix = group.partition("+")[2] or group
    words = []
    unlisted = {name: defaults[name] for name in usual if name in defaults and name not in values}
    for name, recorded in {**values, **unlisted}.items():
        value = _with_tuples(recorded)
        if name in usual or defaults.get(name, value) != value or name not in defaults:
            words += ["--set", f"{prefix}.{name}={to_text(value)}"]
    return words


def _with_tuples(value: Any) -> Any:
    """A record's value as options have it, with tuples for the lists of JSON."""
    return tuple(value) if isinstance(value, list) else value


def _defaults(record: Record, group: str) -> dict[str, Any]:
    """The defaults of a group of options; empty where the method is not installed, so that all options are given."""
    if group == "training":
        return dataclasses.asdict(Schedule())
    try:
        return dataclasses.asdict(_card(record, group).options())
    except UserError:
        return {}


def _card(record: Record, group: str) -> Card:
    """The card that a group of options belongs to. Raises UserError where it is not installed."""
    kind, _, part = group.partition("+")
    if kind == "attack":
        return registry.find("attack", part or _first(record["attack"]))
    if kind == "model":
        return registry.find("model", record["problem"]["model"])
    if kind == "partition":
        return registry.find("partition", record["problem"]["partition"])
    if part:
        return registry.find_part(part)
    protocol = _first(record["defense"])  # a label without a protocol, such as "krum", is of the baseline
    return registry.find("defense", protocol if protocol in registry.registries()["defense"] else BASELINE)


def _usual(record: Record, attack: str) -> dict[str, str]:
    """The values that cards use in place of the schedule's defaults."""
    names: dict[Kind, str] = {
        "attack": attack.split("+")[-1],
        "defense": _first(record["defense"]),
        "dataset": record["problem"]["dataset"],
    }
    cards = [registry.find(kind, name) for kind, name in names.items() if name in registry.registries()[kind]]
    return {name: value for card in cards for name, value in card.usual}


def _first(label: str) -> str:
    """The first part of a label such as "dp-sgd+krum"."""
    return label.split("+")[0]
