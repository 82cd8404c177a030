"""The records of a folder: read once, kept up to date, grouped by trial.

A folder holds records/<key>.json, and pictures/<key>.npz beside them. Several runs may write into one at once: every
file is written whole or not at all, and two runs that measure the same trial write the same thing.
"""

from __future__ import annotations

import os
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fedarena.core.text.plural import plural
from fedarena.records.record_file import read_record, save
from fedarena.records.schema import Record

if TYPE_CHECKING:
    from fedarena.records.results import Gallery

STALE = 900.0
"""Seconds after which a file that was begun and never renamed is nobody's any more: a write takes less than one."""
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


def write(records: Iterable[Record], galleries: Iterable[Gallery], folder: Path) -> list[tuple[Record, Path]]:
    """Write a trial, pictures first, so that a record's are there when it is; each record's file. Raises UserError."""
    from fedarena.records import pictures

    for gallery in galleries:
        pictures.save(gallery, folder)
    return [(record, save(record, folder / "records")) for record in records]


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
            record = read_record(path.read_bytes(), path.stem, self._doubt)
        except OSError as error:
            self.damaged[path.name] = str(error.strerror or error)
        except ValueError as error:
            self.damaged[path.name] = str(error)
        else:
            if record is None:
                self.outdated.add(path.name)
            else:
                self._trials[record["trial"]["key"]][record["key"]] = record

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
