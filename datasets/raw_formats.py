"""The files in which data sets are published, as arrays: no pickle is read, and no file unpacks beyond a limit."""

from __future__ import annotations

import bz2
import gzip
import io
import struct
import tarfile
from pathlib import Path
from typing import IO

import numpy as np

from fedarena.datasets.npz import Array

MOST = 200_000_000
"""Bytes that one packed file may unpack to; the largest that is known, CIFAR-100's training part, has 153.7 million."""
UNSIGNED_BYTES = 0x08
CIFAR_IMAGE = (3, 32, 32)
USPS_IMAGE = (16, 16)


def read_idx(path: Path) -> Array:
    """An array of unsigned bytes in gzipped IDX (LeCun's format of MNIST).

    The file has two zeros, the type, the number of axes, a length for each axis (big-endian) and the values.
    Raises ValueError for a file of another form.
    """
    with gzip.open(path) as stream:
        content = _all(stream, path)
    zeros, kind, axes = struct.unpack_from(">HBB", content)
    if zeros or kind != UNSIGNED_BYTES:
        raise ValueError(f"{path.name} holds no unsigned bytes in IDX")
    shape = struct.unpack_from(f">{axes}I", content, 4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * axes).reshape(shape)


def read_cifar(path: Path, members: tuple[str, ...], labels: int) -> tuple[Array, Array]:
    """Images uint8 [N, 32, 32, 3] and labels int64 [N] of CIFAR's binary version, a tar of packed files.

    A row has `labels` bytes, of which the last is the class, and an image of 3072 bytes, channel by channel.

    Args:
        path: the tar, gzipped.
        members: files in it, whose rows follow one another.
        labels: labels of a row: 1 in CIFAR-10; 2 in CIFAR-100, coarse and fine.
    """
    width = labels + int(np.prod(CIFAR_IMAGE))
    with tarfile.open(path, "r:gz") as packed:
        parts = {Path(m.name).name: _member(packed, m) for m in packed if Path(m.name).name in members}
    rows = np.frombuffer(b"".join(parts[name] for name in members), np.uint8).reshape(-1, width)
    images = rows[:, labels:].reshape(-1, *CIFAR_IMAGE).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(images), rows[:, labels - 1].astype(np.int64)


def read_libsvm(path: Path) -> tuple[Array, Array]:
    """USPS in LIBSVM's text, packed by bzip2, with values in [-1, 1] and labels from 1.

    Returns:
        images uint8 [N, 16, 16] and labels int64 [N] from 0.
    """
    from sklearn.datasets import load_svmlight_file  # it takes a second to import

    with bz2.open(path) as stream:
        values, labels = load_svmlight_file(io.BytesIO(_all(stream, path)), n_features=int(np.prod(USPS_IMAGE)))
    images = (values.toarray().reshape(-1, *USPS_IMAGE) + 1) / 2 * 255
    return images.astype(np.uint8), labels.astype(np.int64) - 1


def _member(packed: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    stream = packed.extractfile(member)
    if stream is None:
        raise ValueError(f"{member.name} is no regular file")
    return _all(stream, Path(member.name))


def _all(stream: IO[bytes] | gzip.GzipFile, path: Path) -> bytes:
    """The whole of an unpacked file. Raises ValueError where it has more than `MOST` bytes."""
    content = stream.read(MOST + 1)
    if len(content) > MOST:
        raise ValueError(f"{path.name} unpacks to more than {MOST} bytes")
    return content
