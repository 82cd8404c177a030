"""The originals and an attack's guesses of a record's first images, in pictures/<record key>.npz beside the records."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fedarena.core.files import write_atomically

if TYPE_CHECKING:
    from fedarena.records.results import Gallery

KEPT = 6
"""How many images of a record are kept."""

Images = npt.NDArray[np.float32]


def save(gallery: Gallery, folder: Path) -> Path:
    """Write the first images atomically, in steps of 1/255. Raises UserError for a folder that cannot be written."""

    def bytes_of(images: Any) -> npt.NDArray[np.uint8]:
        clipped = np.clip(np.asarray(images[:KEPT], dtype=np.float64), 0.0, 1.0)
        return np.rint(255 * clipped).astype(np.uint8)

    buffer = io.BytesIO()
    np.savez_compressed(buffer, originals=bytes_of(gallery.originals), guesses=bytes_of(gallery.guesses))
    path = folder / "pictures" / f"{gallery.key}.npz"
    write_atomically(path, buffer.getvalue())
    return path


def load(folder: Path, key: str) -> tuple[Images, Images] | None:
    """(originals, guesses), each [n, channels, height, width] in [0, 1]; None where the file is missing or damaged."""
    try:
        with np.load(folder / "pictures" / f"{key}.npz") as arrays:
            return tuple(arrays[name].astype(np.float32) / 255 for name in ("originals", "guesses"))
    except (OSError, KeyError, ValueError, zipfile.BadZipFile):
        return None
