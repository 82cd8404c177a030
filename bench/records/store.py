"""The records of a folder, read once, kept up to date and grouped by trial.

A folder holds records/<key>.json, and beside them pictures/<key>.npz with the originals and an attack's guesses of a
record's first images. Several runs may write into one folder at the
same time: every file is written as a whole or not at all, and two runs that measure the same trial write the same
content.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from fedarena.core.errors import UserError
from fedarena.core.files import digest, prepare_folder, read_bytes, read_json, require_regular, write_atomically
from fedarena.core.garbage import no_collection
from fedarena.core.text.numbers import plural
from fedarena.datasets import npz
from fedarena.records.json_schema import anything, fields
from fedarena.records.schema import RECORD, SCHEMA, Record
from fedarena.records.trial_key import key_of
from fedarena.records.upgrade import READABLE, upgrade

if TYPE_CHECKING:
    from fedarena.records.results import Gallery


STALE = 900.0
"""Seconds after which an unfinished file was left by a run that was killed: a write takes less than one."""
UNFINISHED = re.compile(r"\..+\.[a-z]+\.\w{8}")
"""The names that `fedarena.core.files.write_atomically` gives to unfinished files."""


def prepare(folder: Path) -> None:
    """Create a folder for records, or remove from it what killed runs left. Raises UserError if it cannot be written.

    Files that another run may be writing now remain.
    """
    prepare_folder(folder)
    prepare_folder(folder / "records")
    for place in (folder, folder / "records", folder / "pictures"):
        for path in place.glob(".*"):
            if not UNFINISHED.fullmatch(path.name):
                continue
            with suppress(OSError):  # another run removes it at the same time
                if time.time() - path.stat().st_mtime > STALE:
                    path.unlink()


def write(records: Iterable[Record], galleries: Iterable[Gallery], folder: Path) -> list[tuple[Record, Path]]:
    """Write the records of a trial and return each with its file.

    Pictures are written first, so that a record that is there has its pictures.

    Raises:
        UserError: the folder cannot be written.
    """

    for gallery in galleries:
        save_pictures(gallery, folder)
    return [(record, save(record, folder / "records")) for record in records]


PRESENT = f'"schema": {SCHEMA},'.encode()
"""How a file of the present schema begins, but for its brace."""


class Store:
    """The records of a folder.

    Args:
        doubt: says why a record that fits the schema does not count all the same; empty where it counts.

    Attributes:
        folder: the folder.
        damaged: files that hold no record, or not what was written, with the reason. They are ignored, and their
            trials are measured again.
        outdated: files of a schema that cannot be read. They are ignored as well.
        earlier: files of an earlier schema, read as records of the present one.
    """

    def __init__(self, folder: Path, doubt: Callable[[Record], str] = lambda record: "") -> None:
        self.folder = folder
        self._doubt = doubt
        self.damaged: dict[str, str] = {}
        self.outdated: set[str] = set()
        self.earlier: set[str] = set()
        self._seen: set[str] = set()
        self._trials: dict[str, dict[str, Record]] = defaultdict(dict)
        self.refresh()

    def refresh(self) -> None:
        """Read the files that are new since the last time."""
        with suppress(FileNotFoundError, NotADirectoryError):
            names = {e.name for e in os.scandir(self.folder / "records") if e.name.endswith(".json")}
            with no_collection():
                for name in sorted(names - self._seen):
                    self._seen.add(name)
                    self._read(self.folder / "records" / name)

    def _read(self, path: Path) -> None:
        try:
            data = read_bytes(path)
            record = read_record(data, path.stem, self._doubt)
        except OSError as error:
            self.damaged[path.name] = str(error.strerror or error)
        except ValueError as error:
            self.damaged[path.name] = str(error)
        else:
            if record is None:
                self.outdated.add(path.name)
            else:
                if PRESENT not in data[: 2 * len(PRESENT)]:
                    self.earlier.add(path.name)
                self._trials[record["trial"]["key"]][record["key"]] = record

    def trial(self, key: str) -> list[Record]:
        """The records of a trial in the order of their readings; empty unless all of them are there."""
        records = sorted(self._trials.get(key, {}).values(), key=lambda r: r["reading"])
        return records if records and len(records) == records[0]["trial"]["records"] else []

    def complete(self) -> list[str]:
        """The keys of the trials whose records are all there."""
        return [key for key in self._trials if self.trial(key)]

    def require_records(self) -> None:
        """Raise UserError where there are none."""
        if not self.complete():
            if self.folder.name == "records" and Store(self.folder.parent).complete():
                raise UserError(
                    f"{self.folder} is part of a folder of records, allowed: that folder, {self.folder.parent}"
                )
            why = "" if self.folder.is_dir() else ", which is no folder"
            more = "".join(f" ({note})" for note in self.notes())
            raise UserError(
                f"there are no records in {self.folder}{why}{more}: `bench run` and `bench suite run` make some"
            )

    def add(self, records: Iterable[Record], galleries: Iterable[Gallery] = ()) -> None:
        """Write the records of a trial. Raises UserError for a folder that cannot be written."""
        for record, path in write(records, galleries, self.folder):
            self._seen.add(path.name)
            self.damaged.pop(path.name, None)
            self.outdated.discard(path.name)
            self.earlier.discard(path.name)
            self._trials[record["trial"]["key"]][record["key"]] = record

    def notes(self) -> list[str]:
        """Lines about files that are ignored, and about those that an earlier version measured."""
        notes = []
        if self.damaged:
            name, why = next(iter(self.damaged.items()))
            more = f" and {len(self.damaged) - 1} more" if len(self.damaged) > 1 else ""
            notes.append(f"damaged records are ignored: records/{name} ({why}){more}")
        if self.outdated:
            notes.append(
                f"{plural(len(self.outdated), 'record')} of another schema, written by another version: ignored"
            )
        if self.earlier:
            notes.append(
                f"{plural(len(self.earlier), 'record')} of a schema before {SCHEMA}, with the scores of the version "
                "that measured them: integrity may be that of the last round, and privacy of images that of SSIM; no "
                "references, and no word on tuning"
            )
        return notes


def save(record: Record, folder: Path) -> Path:
    """Write a record to `folder`/<key>.json, atomically.

    Raises:
        UserError: the folder cannot be written.
    """
    path = folder / f"{record['key']}.json"
    content = json.loads(json.dumps(record, allow_nan=False))  # as it will be read, with lists for tuples
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


MOST_PICTURES = 6
"""How many images of a record are stored."""
MOST_VALUES = 10**8
"""How many values a file of pictures holds at most; one that claims more is damaged."""
GALLERY = ("originals", "guesses")
"""The arrays of a file of pictures."""

Images = npt.NDArray[np.float32]


def save_pictures(gallery: Gallery, folder: Path) -> Path:
    """Write the first images atomically, in steps of 1/255. Raises UserError for a folder that cannot be written."""

    def bytes_of(images: Any) -> npt.NDArray[np.uint8]:
        clipped = np.clip(np.asarray(images[:MOST_PICTURES], dtype=np.float64), 0.0, 1.0)
        return np.rint(255 * clipped).astype(np.uint8)

    buffer = io.BytesIO()
    np.savez_compressed(buffer, originals=bytes_of(gallery.originals), guesses=bytes_of(gallery.guesses))
    path = folder / "pictures" / f"{gallery.key}.npz"
    write_atomically(path, buffer.getvalue())
    return path


def load_pictures(folder: Path, key: str) -> tuple[Images, Images] | None:
    """(originals, guesses), each [n, channels, height, width] in [0, 1]; None where the file is missing or damaged."""
    if Path(key).name != key:
        return None  # a stranger's board may hold the path of another file
    path = folder / "pictures" / f"{key}.npz"
    try:
        require_regular(path)
        if not all(map(_holds_pictures, npz.headers(path, GALLERY).values())):
            return None
        content = npz.arrays(path, GALLERY)
    except (OSError, UserError):
        return None
    originals, guesses = (content[name].astype(np.float32) / np.float32(255) for name in GALLERY)
    return originals, guesses


def _holds_pictures(header: npz.Header) -> bool:
    """Whether an array has at least one image of at least one pixel, grey or in colours, and not too much of them."""
    shape = header.shape
    whole = len(shape) == 4 and all(size > 0 for size in shape) and shape[1] in (1, 3)
    return whole and header.dtype == np.uint8 and math.prod(shape) <= MOST_VALUES
