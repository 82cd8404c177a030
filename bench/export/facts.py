"""What is exported: the records of some folders, and each record as the parameters, metrics and curves of a tracker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedarena.board.load import find_folder
from fedarena.core.options import to_text
from fedarena.core.text.numbers import plural
from fedarena.records.schema import Record
from fedarena.records.store import Store
from fedarena.runs.suite.plan import read_plan

Curves = dict[str, list[tuple[int, float]]]
"""Name → (round, value), ascending."""


@dataclass(frozen=True)
class Exported:
    """A record, and the experiment that it belongs to: its suite, or its defense against its attack."""

    record: Record
    experiment: str


def read(names: Sequence[str]) -> tuple[list[Exported], list[str]]:
    """The records of folders or suites, each once, and notes on files that are left out.

    Raises:
        UserError: a folder that holds no records.
    """
    found: dict[str, Exported] = {}
    notes: list[str] = []
    for name in names:
        folder = find_folder(name)
        records, more = _records_in(folder)
        notes += more
        plan = read_plan(folder)
        for record in records:
            found.setdefault(record["key"], Exported(record, _pairing(record) if plan is None else plan.suite))
    return list(found.values()), notes


def _pairing(record: Record) -> str:
    against = "without an attack" if record["attack"] == "none" else f"against {record['attack']}"
    return f"{record['defense']} {against}"


def _records_in(folder: Path) -> tuple[list[Record], list[str]]:
    store = Store(folder)
    store.require_records()
    return [record for key in store.complete() for record in store.trial(key)], store.notes()


def parameters(record: Record) -> dict[str, str]:
    """Everything that determines the record: what met what, on which problem, and every option."""
    content: Any = record
    named = {name: content[name] for name in ("defense", "attack", "goal", "party", "form", "seed", "reading")}
    named["knows"] = record["attacker_knowledge"]
    problem = {f"problem.{name}": v for name, v in record["problem"].items() if not isinstance(v, Mapping)}
    options = {f"{kind}.{name}": v for kind, some in record["options"].items() for name, v in some.items()}
    return {name: _text(value) for name, value in (named | problem | options).items() if value != ""}


def _text(value: Any) -> str:
    return to_text(tuple(value) if isinstance(value, list) else value)


def metrics(record: Record) -> dict[str, float]:
    """Scores, metrics, accuracies, promises and costs."""
    utility: Any = record["utility"]
    cost: Any = record["cost"]
    named = {
        **{f"score.{name}": value for name, value in record["scores"].items()},
        **{f"metric.{name}": value for name, value in record["metrics"].items()},
        **{f"utility.{name}": utility.get(name) for name in ("clean_accuracy", "fedavg_accuracy", "chance")},
        **{f"utility.{name}": value for name, value in utility.get("nodes", {}).items()},
        **{f"guarantee.{name}": value for name, value in record["guarantees"].items()},
        **{f"cost.{name}": value for name, value in cost.items()},
    }
    return {name: float(value) for name, value in named.items() if value is not None}


def curves(record: Record) -> Curves:
    """Accuracy and loss by round, without an attack and under one, and what the judge measured by round."""
    found: Curves = {}
    for name, points in (
        ("clean", record["utility"].get("clean_curve")),
        ("attacked", record["attacked"].get("curve")),
    ):
        found[f"curve.{name}_accuracy"] = [(p[0], p[1]) for p in points or ()]
        found[f"curve.{name}_loss"] = [(p[0], p[2]) for p in points or () if len(p) > 2 and p[2] is not None]
    found["curve.attack_success"] = [(int(t), value) for t, value in record["attacked"].get("success", ())]
    by_round = {name: points for name, points in record["series"].items() if name != "roc"}
    found |= {f"series.{name}": [(int(t), value) for t, value in points] for name, points in by_round.items()}
    return {name: sorted(points) for name, points in found.items() if points}


def labels(record: Record) -> dict[str, str]:
    """What a tracker files the record under."""
    where = record["environment"]
    return {
        "fedarena.key": record["key"],
        "fedarena.trial": record["trial"]["key"],
        "fedarena.version": where["fedarena"],
        "fedarena.commit": where["commit"] or "none",
        "fedarena.status": record["status"],
        "fedarena.reason": record["reason"] or "none",
    }


def title(record: Record) -> str:
    """The name of its run."""
    who = [record["party"], record["form"], record["attacker_knowledge"], record["reading"]]
    parts = [record["defense"], record["attack"], *filter(None, who), f"seed {record['seed']}"]
    return ", ".join(parts)


def outcome(new: int, items: Sequence[Exported], what: str, where: object) -> str:
    """What a tracker got, in words: the new runs, in how many experiments of its own word, and where they are."""
    old = f" ({len(items) - new} more were there already)" if new < len(items) else ""
    return f"{plural(new, 'run')} in {plural(len({item.experiment for item in items}), what)}{old}: {where}"
