"""The file of one record: written as a whole with a sum of its content, and checked when it is read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from fedarena.core.files import digest, read_json, write_atomically
from fedarena.records.json_schema import anything, fields
from fedarena.records.schema import RECORD, Record
from fedarena.records.trial_key import key_of
from fedarena.records.upgrade import READABLE, upgrade


def save(record: Record, folder: Path) -> Path:
    """Write a record to `folder`/<key>.json, atomically.

    Raises:
        UserError: the folder cannot be written.
    """
    path = folder / f"{record['key']}.json"
    content = json.loads(json.dumps(record, allow_nan=False))  # as it is read again, lists for tuples
    content.pop("sum", None)
    write_atomically(path, json.dumps({**content, "sum": sum_of(content)}, indent=2) + "\n")
    return path


def read_record(data: bytes, key: str, doubt: Callable[[Record], str] = lambda record: "") -> Record | None:
    """A record from its file's content; None for one of a schema that cannot be read.

    Args:
        key: the record's key, by its file's name.
        doubt: says why a record that fits the schema does not count all the same; empty where it counts.

    Raises:
        ValueError: the file holds no record, or not what was written.
    """
    content: Any = read_json(data)
    fields({"schema": anything})(content, "")
    # The first records of schema 6 had no sums.
    if content["schema"] not in READABLE or "sum" not in content:
        return None
    record = upgrade(content)
    total = record.pop("sum")
    RECORD(record, "")
    checked = cast(Record, record)
    if checked["key"] != key or key_of(checked) != key:
        raise ValueError("its name is not that of its content")
    if why := doubt(checked):
        raise ValueError(why)
    if total != sum_of(content):
        raise ValueError("it was changed after it was written: its sum is that of another content")
    return checked


def sum_of(content: Mapping[str, Any]) -> str:
    """The sum of a file's content: 20 hex digits of the sha256 of everything but the sum itself."""
    return digest({name: value for name, value in content.items() if name != "sum"}, 20)
