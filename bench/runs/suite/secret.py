"""The secret of a suite's folder, which has a file of its own: a killed suite goes on with the same one."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from fedarena.core.errors import UserError
from fedarena.core.files import read_bytes
from fedarena.core.rng import is_secret

NAME = "secret"


def stored_secret(folder: Path, given: str = "") -> str:
    """The folder's secret, or else the given one. Raises UserError where they differ, or the file is damaged."""
    try:
        stored = read_bytes(folder / NAME).decode(errors="replace").strip()
    except (FileNotFoundError, NotADirectoryError):
        return given
    except OSError as error:
        raise UserError(f"cannot read {folder / NAME}: {error.strerror or error}") from None
    if not is_secret(stored):
        raise UserError(f"{folder / NAME} holds no secret: put back its 32 hexadecimal digits, which any record has")
    if given and given != stored:
        raise UserError(
            f"option 'secret' is {given}, but {folder} has the secret {stored}: give another folder by --out"
        )
    return stored


def keep_secret(folder: Path, secret: str) -> None:
    """Write the secret, if there is one, as a whole or not at all.

    Raises:
        UserError: another run has written another one since, or the folder cannot be written.
    """
    if not secret:
        return
    try:
        with tempfile.NamedTemporaryFile("w", dir=folder, prefix=f".{NAME}.text.") as file:
            file.write(secret + "\n")
            file.flush()
            os.fsync(file.fileno())
            os.link(file.name, folder / NAME)  # unlike a rename, it never replaces a file
    except FileExistsError:
        stored_secret(folder, secret)
    except OSError as error:
        raise UserError(f"cannot write {folder / NAME}: {error.strerror or error}") from None
