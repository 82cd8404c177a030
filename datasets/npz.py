"""Reading and writing .npz archives without surprises: headers first, every checksum in the zip checked, no pickles."""

from __future__ import annotations

import lzma
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from fedarena.core.errors import UserError
from fedarena.core.files import require_regular

KEYS = ("x_train", "y_train", "x_test", "y_test")

Array = npt.NDArray[Any]
Arrays = Mapping[str, Array]

_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    tokenize.TokenError,
    EOFError,
    OSError,
    ValueError,
    SyntaxError,
    TypeError,
    KeyError,
    NotImplementedError,  # a compression method that zipfile lacks
    RuntimeError,  # an encrypted member
)


@dataclass(frozen=True)
class Header:
    """The header of a .npy member."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]


def headers(path: Path, keys: tuple[str, ...] = KEYS) -> dict[str, Header]:
    """Type and shape of these arrays, without decompressing them.

    Raises:
        UserError: a file that is not an .npz archive or is damaged, or lacks one of `keys`.
    """
    with _archive(path, keys) as archive:
        headers = {}
        for key in keys:
            with archive.open(f"{key}.npy") as member:
                headers[key] = _header(member)
        return headers


def arrays(path: Path, keys: tuple[str, ...] = KEYS) -> dict[str, Array]:
    """These arrays, which must not be changed. Raises UserError as `headers` does, and for a wrong CRC-32."""
    status = path.stat()
    return dict(_arrays(path, keys, status.st_mtime_ns, status.st_size))


@lru_cache(maxsize=2)
def _arrays(path: Path, keys: tuple[str, ...], changed: int, size: int) -> dict[str, Array]:
    """Read the file once as long as it does not change: a process that runs many trials would unpack it for each."""
    with _archive(path, keys) as archive:
        content = {}
        for key in keys:
            with archive.open(f"{key}.npy") as member:
                content[key] = np.lib.format.read_array(member, allow_pickle=False)
                if member.read(1):  # reading past the end is what makes zipfile compare the CRC-32
                    raise ValueError(f"{key} has bytes left over")
        return content


def write(path: Path, content: Arrays) -> None:
    """Write the four arrays, compressed. The caller chooses a temporary name and renames."""
    np.savez_compressed(path, allow_pickle=False, **{key: content[key] for key in KEYS})


@contextmanager
def _archive(path: Path, keys: tuple[str, ...]) -> Iterator[zipfile.ZipFile]:
    try:
        require_regular(path)
        with zipfile.ZipFile(path) as archive:
            present = {name.removesuffix(".npy") for name in archive.namelist()}
            missing = [key for key in keys if key not in present]
            if missing:
                raise UserError(f"data file {path} lacks {', '.join(missing)}: expected the keys {', '.join(keys)}")
            yield archive
    except _BROKEN as error:
        why = " ".join(str(error).split())[:200] or type(error).__name__
        raise UserError(f"data file {path} is damaged ({why}): expected an .npz with {', '.join(keys)}") from error


def _header(member: IO[bytes]) -> Header:
    version = np.lib.format.read_magic(member)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(member)
    return Header(dtype, shape)
