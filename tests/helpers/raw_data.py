"""Little files in the formats in which data sets are published."""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
from pathlib import Path

from fedarena.datasets.npz import Array


def idx(values: Array) -> bytes:
    """An array of bytes in gzipped IDX."""
    return gzip.compress(struct.pack(f">HBB{values.ndim}I", 0, 8, values.ndim, *values.shape) + values.tobytes())


def cifar_tar(path: Path, **members: bytes) -> bytes:
    """A tar with `members` as NAME.bin in a folder, written to `path`, and its bytes."""
    with tarfile.open(path, "w:gz") as packed:
        for name, content in members.items():
            info = tarfile.TarInfo(f"cifar/{name}.bin")
            info.size = len(content)
            packed.addfile(info, io.BytesIO(content))
    return path.read_bytes()
