"""JSON as this package writes it, hashes of it, and files that are written as a whole or not at all."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
import sys
import tempfile
from pathlib import Path
from typing import Any

from fedarena.core.errors import UserError

TOO_LONG = f"it holds a whole number of more than {sys.get_int_max_str_digits()} digits"
"""Why Python reads no such file: such numbers take long to read."""


class _NoNumber(ValueError):
    """A word of Python's JSON that stands for no number."""


def read_json(data: str | bytes) -> Any:
    """Read JSON as this package writes it. Raises ValueError with a plain message for anything else, such as NaN."""

    def refuse(word: str) -> Any:
        raise _NoNumber(f"it holds {word}, which is no number")

    try:
        return json.loads(data.decode() if isinstance(data, bytes) else data, parse_constant=refuse)
    except UnicodeDecodeError:
        raise ValueError("it is no text") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"it is no JSON from line {error.lineno}, column {error.colno} on") from None
    except RecursionError:
        raise ValueError("its lists and tables are nested too deeply") from None
    except _NoNumber:
        raise
    except ValueError:
        raise ValueError(TOO_LONG) from None


def canonical(value: Any) -> str:
    """A value as JSON with sorted keys and no spaces. Raises ValueError for NaN and infinity."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(value: Any, digits: int = 64) -> str:
    """The first hex digits of the sha256 of a value in canonical JSON."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:digits]


def read_bytes(path: Path) -> bytes:
    """The content of a regular file. Raises OSError for anything else: reading a pipe might never end."""
    require_regular(path)
    return path.read_bytes()


def require_regular(path: Path) -> None:
    """Raise OSError for what is neither a regular file nor a link to one."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, "it is no regular file", str(path))


def resolved(path: str | Path) -> Path:
    """The path without links. `Path.resolve` fails at a link to itself, which is left here as it is."""
    return Path(os.path.realpath(path))


def prepare_folder(folder: Path, option: str = "out") -> None:
    """Create the folder that an option names. Raises UserError where it cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(
            f"option '{option}' is {folder}, which cannot be written ({reason}): give a writable folder"
        ) from None


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file so that a killed run leaves the old content or the new one: beside it, then renamed.

    Raises:
        UserError: the file cannot be written.
    """
    # A file name that is no UTF-8 has letters that UTF-8 lacks.
    data = content.encode(errors="backslashreplace") if isinstance(content, str) else content
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException as error:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise UserError(f"cannot write {path}: {error.strerror or error}") from None
        raise
