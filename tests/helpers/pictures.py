"""Pictures of attacks, written without an attack."""

from __future__ import annotations

from pathlib import Path

import numpy as np


def save_pictures(folder: Path, key: str, images: np.ndarray, guesses: np.ndarray) -> None:
    """As fedarena.records.store keeps them."""
    (folder / "pictures").mkdir(exist_ok=True)
    steps = [np.rint(255 * x).astype(np.uint8) for x in (images, guesses)]
    np.savez_compressed(folder / "pictures" / f"{key}.npz", originals=steps[0], guesses=steps[1])
