"""Records as a table: one row for each record, which is one reading of a trial."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from fedarena.records.schema import Record

if TYPE_CHECKING:
    from pandas import DataFrame

PLACE = ("defense", "attack", "goal", "party", "form", "attacker_knowledge", "reading", "seed", "status", "reason")
PROBLEM = ("dataset", "model", "partition", "clients", "corrupted")
UTILITY = ("clean_accuracy", "fedavg_accuracy", "chance")
COSTS = ("bytes_up", "bytes_down", "seconds", "relative_seconds", "peak_bytes")


def to_frame(records: Iterable[Record]) -> DataFrame:
    """The table, in the order of the records.

    Columns are the place of the record (defense, attack, party, form, …), its problem, `score NAME` and `metric NAME`
    for every score and metric that any record has, accuracies without an attack, also of single nodes without a server,
    guarantees, costs, and the key. What a record does not have is missing.
    """
    from pandas import DataFrame

    return DataFrame([_row(record) for record in records])


def _row(record: Record) -> dict[str, Any]:
    content: Any = record
    return {
        **{name: content[name] for name in PLACE},
        **{name: content["problem"][name] for name in PROBLEM},
        **{f"score {name}": value for name, value in record["scores"].items()},
        **{f"metric {name}": value for name, value in record["metrics"].items()},
        **{name: content["utility"].get(name) for name in UTILITY},
        **content["utility"].get("nodes", {}),
        **{f"guarantee {name}": value for name, value in record["guarantees"].items()},
        **{name: content["cost"].get(name) for name in COSTS},
        "key": record["key"],
    }
