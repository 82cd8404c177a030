"""Records of earlier schemas, read as records of the present one.

Schema 7 renamed fields of schema 6: `knows` to `attacker_knowledge`, `marks` to `warnings`, and `problem.belief` to
`problem.assumed_corrupted`. Schema 8 has `utility.references` in place of `utility.relative`, which
compared a model with FedAvg's alone. Records of both are read without being measured again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedarena.records.schema import SCHEMA

READABLE = (6, 7, SCHEMA)
"""The schemas of records that can be read."""

RENAMED = {"knows": "attacker_knowledge", "marks": "warnings"}
RENAMED_IN_PROBLEM = {"belief": "assumed_corrupted"}


def upgrade(content: Mapping[str, Any]) -> dict[str, Any]:
    """The content of a record's file in the present schema. It is not checked yet: any field may be wrong or missing.

    Args:
        content: what the file holds; its `schema` is one of `READABLE`.
    """
    if content["schema"] == SCHEMA:
        return dict(content)
    record = _renamed(content, RENAMED)
    if isinstance(record.get("problem"), Mapping):
        record["problem"] = _renamed(record["problem"], RENAMED_IN_PROBLEM)
    if isinstance(record.get("utility"), Mapping):
        kept = {name: value for name, value in record["utility"].items() if name != "relative"}
        record["utility"] = {**kept, "references": {}}
    return {**record, "schema": SCHEMA}


def _renamed(table: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names.get(name, name): value for name, value in table.items()}
