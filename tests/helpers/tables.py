"""Tables of pairings, by the goal that their records name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fedarena import goals
from fedarena.goals import inference_table
from fedarena.goals.inference_table import Rows
from fedarena.goals.pairing_table import Cell
from fedarena.records.schema import Record


def cell(records: Iterable[Record]) -> Cell | None:
    rows = list(records)
    return inference_table.cell_of(rows, goals.find(rows[0]["goal"]).text) if rows else None


def table(records: Sequence[Record], defense: str) -> Rows:
    return inference_table.table(records, defense, goals.find(records[0]["goal"]).text)


def conclusion(rows: Rows, records: Sequence[Record], defense: str, attack: str) -> tuple[str, ...]:
    goal = goals.find(records[0]["goal"])
    return inference_table.conclusion(rows, records, defense, attack, goal.text, goal.parties)
