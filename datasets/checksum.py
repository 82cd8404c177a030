"""Checksums of data files: against this package's table, or against the sidecar that a download wrote.

A sidecar `mnist.npz.sha256` holds one line as `sha256sum` prints it, so `sha256sum -c` reads it too.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fedarena.core.errors import UserError
from fedarena.core.files import read_bytes, require_regular
from fedarena.datasets.cards.spec import File

State = Literal["verified", "unchanged", "unknown", "mismatch"]


@dataclass(frozen=True)
class Checksum:
    """A file's checksum and what is known of it.

    Attributes:
        sha256: hexadecimal digest.
        state: `verified` (in the table), `unchanged` (equal to the sidecar, which anyone may have written), `mismatch`
            (the sidecar says otherwise), `unknown` (neither knows it).
        source: a description of the file, if it is known.
    """

    sha256: str
    state: State
    source: str | None = None


def sidecar(path: Path) -> Path:
    """Where the checksum of a downloaded file is kept."""
    return path.with_name(f"{path.name}.sha256")


def sidecar_text(path: Path, sha256: str, source: str) -> str:
    """The sidecar's content: a comment with the source, and the checksum of `path` by name."""
    return f"# {source}\n{sha256}  {path.name}\n"


def digest(path: Path) -> str:
    """sha256 of a file. Raises UserError when it cannot be read."""
    try:
        require_regular(path)
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"data file {path} cannot be read: {error.strerror or error}") from error


def check(path: Path, file: File) -> Checksum:
    """Compute a file's checksum and look it up. Raises UserError when it cannot be read."""
    sha256 = digest(path)
    if sha256 == file.sha256:
        return Checksum(sha256, "verified", file.source)
    beside = sidecar(path)
    if not beside.exists():
        return Checksum(sha256, "unknown")
    try:
        text = read_bytes(beside).decode()
    except (OSError, UnicodeDecodeError):
        text = ""
    expected = re.search(r"^([0-9a-f]{64})\b", text, re.MULTILINE)
    if expected is None or expected.group(1) != sha256:
        return Checksum(sha256, "mismatch")
    source = re.search(r"^# (.+)$", text, re.MULTILINE)
    return Checksum(sha256, "unchanged", source.group(1) if source else None)
