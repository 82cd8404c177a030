"""Records of one poisoning attack against one defense → the table that sets it beside no defense."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from fedarena.cli.output.pairing_table import Cell, cell
from fedarena.core import registry
from fedarena.core.text.mean import Mean, mean
from fedarena.core.text.numbers import MEASURES, level, percent
from fedarena.federation.integrity import learned
from fedarena.records.measure import measure_of
from fedarena.records.schema import Record

NOBODY = "nobody"
"""The row of the runs in which everybody is honest."""


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        knows: what the corrupted clients know, or `NOBODY`.
        cells: defense → cell over seeds.
    """

    knows: str
    cells: dict[str, Cell | None]


def rows(records: Sequence[Record], defense: str) -> list[Row]:
    """The clean row, then one a knowledge; columns are FedAvg (no defense) and the defense."""
    columns = list(dict.fromkeys(("fedavg", defense)))
    found = []
    for knows in dict.fromkeys(r["knows"] for r in records):
        mine = [r for r in records if r["knows"] == knows]
        found.append(Row(knows or NOBODY, {d: cell(r for r in mine if r["defense"] == d) for d in columns}))
    return found


def clean_accuracy(records: Sequence[Record], defense: str) -> list[float]:
    """Accuracy of the runs in which everybody is honest, by seed."""
    return [r["utility"]["clean_accuracy"] for r in records if not r["knows"] and r["defense"] == defense]


def unweighed(records: Sequence[Record], defense: str) -> str:
    """Why nothing is said of whose uploads a defense used; empty where there is something to say."""
    mine = [r for r in records if r["defense"] == defense and r["status"] == "ok"]
    if not mine or any(name.endswith("_rejected") for r in mine for name in r["metrics"]):
        return ""
    parts = [group.partition("+")[2] for group in mine[0]["options"] if group.startswith("defense+")]
    if any(registry.find_part(part).kind == "secure" for part in parts):
        return "no weights and no rejections of uploads, for the server sees their sum alone"
    if parts:
        return "no weights and no rejections of uploads, for a coordinate-wise rule selects no uploads"
    return "no weights and no rejections of uploads, for the protocol does not tell what it made of each"


def verdict(records: Sequence[Record], defense: str, attack: str) -> str:
    """A sentence for each knowledge: what the attack leaves of the accuracy, with the defense and without.

    Then one for each reason why there is no result, and one where honest clients alone learn nothing either.
    """
    told: list[str] = []
    measure = measure_of(records)
    without: dict[str, dict[str, list[str]]] = {}
    for row in rows(records, defense):
        if row.knows == NOBODY:
            continue
        known, outcomes = _knowledge(row.knows), []
        for name, c in row.cells.items():
            if c is None:
                continue
            if "accuracy" in c.metrics:
                outcomes.append(_outcome(c, mean(clean_accuracy(records, name)), name, measure))
            else:
                without.setdefault(c.reason, {}).setdefault(known, []).append(_called(name))
        if outcomes:
            told.append(f"With {known}, {attack} {' and '.join(outcomes)}.")
    for reason, places in without.items():
        where = ", nor ".join(f"against {' and '.join(whom)} with {known}" for known, whom in places.items())
        told.append(f"{attack} gives no result {where}: {reason}.")
    told.append(_nothing_learned(records, defense))
    if len({r["seed"] for r in records}) > 1:
        told.append("Intervals: 95 % confidence over seeds.")
    return " ".join(sentence for sentence in told if sentence)


def _knowledge(knows: str) -> str:
    return {"own": "their own data only", "omniscient": "all honest uploads known"}.get(knows, knows)


def _called(defense: str) -> str:
    return "FedAvg" if defense == "fedavg" else defense


def _outcome(c: Cell, clean: Mean, defense: str, measure: str) -> str:
    before, after = level(clean, measure), level(c.metrics["accuracy"], measure)
    told = f"takes {_called(defense)} from {before} to {after} {MEASURES[measure]}"
    if "attack_success_rate" not in c.metrics:
        return told
    success, base = (percent(c.metrics[f"{whose}_success_rate"]) for whose in ("attack", "clean"))
    return f"{told}, with the trigger working on {success} (honest model: {base})"


def _nothing_learned(records: Sequence[Record], defense: str) -> str:
    """A sentence, where the honest runs that integrity is measured against are at chance on some seed."""
    told, measure = [], measure_of(records)
    for name in dict.fromkeys(("fedavg", defense)):
        clean = [r["utility"] for r in records if not r["knows"] and r["defense"] == name]
        nothing = [u for u in clean if not learned(u["clean_accuracy"], u["chance"])]
        if nothing:
            reached = level(Mean(fmean(u["clean_accuracy"] for u in nothing), None, len(nothing)), measure)
            seeds = "" if len(nothing) == len(clean) else f" on {len(nothing)} of {len(clean)} seeds"
            told.append(f"{_called(name)} ({reached}{seeds})")
    if not told:
        return ""
    # Of a defense that fails where FedAvg does not, nothing is left; where FedAvg fails, there was nothing to keep.
    then = "there is no integrity" if told[0].startswith(_called("fedavg")) else "integrity is 0"
    return (
        f"Even with everybody honest the {MEASURES[measure]} of {' and '.join(told)} is that of guessing: an attack "
        f"has nothing to break there, and {then}."
    )
