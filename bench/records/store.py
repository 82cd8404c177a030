"""The records of a folder: read once, kept up to date, grouped by trial.

A folder holds records/<key>.json, and pictures/<key>.npz beside them. Several runs may write into one at once: every
file is written whole or not at all, and two runs that measure the same trial write the same thing.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedarena.contracts.goal_names import GOAL_NAMES
from fedarena.core.files import digest, read_json, write_atomically
from fedarena.core.text.plural import plural
from fedarena.records.json_schema import (
    amount,
    anything,
    each,
    either,
    fields,
    named,
    number,
    pair,
    perhaps,
    point,
    share,
    text,
    whole,
)
from fedarena.records.schema import SCHEMA, STATUSES, Record
from fedarena.records.trial_key import key_of

if TYPE_CHECKING:
    from fedarena.records.results import Gallery

STALE = 900.0
"""Seconds after which a file that was begun and never renamed is nobody's any more: a write takes less than one."""
RECORD = fields(
    {
        **dict.fromkeys(("key", "defense", "attack", "party", "form", "knows", "reading", "reason"), text),
        "trial": fields({"key": text, "records": whole}),
        "problem": fields(
            {
                **dict.fromkeys(("dataset", "model", "partition", "device", "corrupted_data"), text),
                **dict.fromkeys(("clients", "corrupted", "belief"), whole),
                "data": fields({"subset": perhaps(text)}),
            }
        ),
        "goal": either("", *GOAL_NAMES),
        "seed": whole,
        "status": either(*STATUSES),
        "metrics": named(number),
        "series": named(each(pair)),
        "scores": named(share),
        "utility": fields({"clean_accuracy": number, "clean_curve": each(point), "measure": text, "chance": number}),
        "attacked": fields({}, {"curve": each(point)}),
        "tuned": fields({}),
        "marks": each(text),
        "guarantees": named(number),
        "cost": fields(
            {
                **dict.fromkeys(("bytes_up", "bytes_down", "seconds", "attack_seconds", "peak_bytes"), amount),
                "relative_seconds": perhaps(amount),
            }
        ),
        "options": fields(
            {
                "model": fields({}),
                "partition": fields({}),
                "training": fields({"local_epochs": whole, "batch_size": whole, "rounds": whole, "lr": number}),
            }
        ),
        "versions": named(whole),
        "origins": named(text),
        "environment": fields({"libraries": named(anything)}),
    }
)
"""What a record of this layout holds."""
BEGUN = re.compile(r"\..+\.[a-z]+\.\w{8}")
"""What `fedarena.core.files.write_atomically` calls a file that it has begun."""


def clear_litter(folder: Path) -> None:
    """Remove what killed runs had begun to write; what another run may be writing at this moment stays."""
    for place in (folder, folder / "records", folder / "pictures"):
        for path in place.glob(".*"):
            if not BEGUN.fullmatch(path.name):
                continue
            with suppress(OSError):  # another run cleans up too
                if time.time() - path.stat().st_mtime > STALE:
                    path.unlink()


def save(record: Record, folder: Path) -> Path:
    """Write a record to `folder`/<key>.json, atomically.

    Raises:
        UserError: the folder cannot be written.
    """
    path = folder / f"{record['key']}.json"
    content = json.loads(json.dumps(record, allow_nan=False))  # as it is read again, lists for tuples
    content.pop("sum", None)
    write_atomically(path, json.dumps({**content, "sum": digest(content, 20)}, indent=2) + "\n")
    return path


def take_sum(record: Record) -> None:
    """Take the sum off a record that was read. Raises ValueError where the rest is not what was written."""
    if record.pop("sum", None) != digest(record, 20):
        raise ValueError("it was changed after it was written: its sum is that of another content")


def write(records: Iterable[Record], galleries: Iterable[Gallery], folder: Path) -> list[tuple[Record, Path]]:
    """Write a trial, pictures first, so that a record's are there when it is; each record's file. Raises UserError."""
    from fedarena.records import pictures

    for gallery in galleries:
        pictures.save(gallery, folder)
    return [(record, save(record, folder / "records")) for record in records]


def check(record: Any, key: str) -> None:
    """Raise ValueError for what is no record of this layout and key."""
    RECORD(record, "")
    named(fields({}))(record["options"], "options")
    if record["key"] != key or key_of(record) != key:
        raise ValueError("its name is not that of its content")


class Store:
    """A folder's records.

    Args:
        doubt: says of a record of this layout why it counts for nothing all the same; empty where it counts.

    Attributes:
        folder: where they are.
        damaged: files that are no record, or no more what was written, with the reason; they count for nothing and are
            measured again.
        outdated: those of another layout; likewise.
    """

    def __init__(self, folder: Path, doubt: Callable[[Record], str] = lambda record: "") -> None:
        self.folder = folder
        self._doubt = doubt
        self.damaged: dict[str, str] = {}
        self.outdated: set[str] = set()
        self._seen: set[str] = set()
        self._trials: dict[str, dict[str, Record]] = defaultdict(dict)
        self.refresh()

    def refresh(self) -> None:
        """Read what has come since the last time."""
        with suppress(FileNotFoundError):
            found = {e.name for e in os.scandir(self.folder / "records") if e.name.endswith(".json")}
            for name in sorted(found - self._seen):
                self._seen.add(name)
                self._read(self.folder / "records" / name)

    def _read(self, path: Path) -> None:
        try:
            record: Any = read_json(path.read_bytes())
            fields({"schema": anything})(record, "")
            # Before there were sums, records of this layout had none.
            if record["schema"] != SCHEMA or "sum" not in record:
                self.outdated.add(path.name)
                return
            check(record, path.stem)
            if why := self._doubt(record):
                raise ValueError(why)
            take_sum(record)
            self._trials[record["trial"]["key"]][record["key"]] = record
        except OSError as error:
            self.damaged[path.name] = str(error.strerror or error)
        except ValueError as error:
            self.damaged[path.name] = str(error)

    def trial(self, key: str) -> list[Record]:
        """A trial's records in the order of their readings; [] unless all of them are there."""
        found = self._trials.get(key, {})
        records = sorted(found.values(), key=lambda r: str(r["reading"]))
        return records if records and len(records) == records[0]["trial"]["records"] else []

    def complete(self) -> list[str]:
        """Keys of the trials all of whose records are there."""
        return [key for key in self._trials if self.trial(key)]

    def add(self, records: Iterable[Record], galleries: Iterable[Gallery] = ()) -> None:
        """Write a trial. Raises UserError."""
        for record, path in write(records, galleries, self.folder):
            self._seen.add(path.name)
            self.damaged.pop(path.name, None)
            self.outdated.discard(path.name)
            self._trials[record["trial"]["key"]][record["key"]] = record

    def notes(self) -> list[str]:
        """What a reader must know of the files."""
        told = []
        if self.damaged:
            name, why = next(iter(self.damaged.items()))
            more = f" and {len(self.damaged) - 1} more" if len(self.damaged) > 1 else ""
            told.append(f"damaged records count for nothing: records/{name} ({why}){more}")
        if self.outdated:
            told.append(f"{plural(len(self.outdated), 'record')} of another layout, as other versions write: of no use")
        return told
