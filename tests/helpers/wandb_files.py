"""What a run of Weights & Biases that was made offline holds, read from its file."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BLOCK = 1 << 15
HEADER = 7
"""Bytes of the file's own header, and of each chunk's: checksum (4), length (2), kind (1)."""


@dataclass
class OfflineRun:
    """A run.

    Attributes:
        id, project, name: as the service would show them.
        config, summary: values by name.
        history: the values of each step.
        files: the names of files to be uploaded.
    """

    id: str = ""
    project: str = ""
    name: str = ""
    config: dict[str, Any] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)
    history: dict[int, dict[str, float]] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)


def read_offline(path: Path) -> OfflineRun:
    """The content of a file run-ID.wandb."""
    from wandb.proto import wandb_internal_pb2

    run = OfflineRun()
    for data in _records(path.read_bytes()):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(data)
        kind = record.WhichOneof("record_type")
        if kind == "run":
            run.id, run.project, run.name = record.run.run_id, record.run.project, record.run.display_name
            run.config |= _values(record.run.config.update)
        elif kind == "summary":
            run.summary |= _values(record.summary.update)
        elif kind == "history":
            run.history[record.history.step.num] = _values(record.history.item)
        elif kind == "files":
            run.files += [one.path for one in record.files.files]
    return run


def _values(items: Any) -> dict[str, Any]:
    return {item.key or ".".join(item.nested_key): json.loads(item.value_json) for item in items}


def _records(data: bytes) -> Iterator[bytes]:
    """The records of a log in LevelDB's format: in blocks, where a record may be cut into chunks."""
    at, parts = HEADER, b""
    while at + HEADER <= len(data):
        if BLOCK - at % BLOCK < HEADER:  # a chunk's header never crosses the end of a block
            at += BLOCK - at % BLOCK
            continue
        length, kind = struct.unpack_from("<HB", data, at + 4)
        parts += data[at + HEADER : at + HEADER + length]
        at += HEADER + length
        if kind in (1, 4):  # whole, or the last chunk
            yield parts
            parts = b""
