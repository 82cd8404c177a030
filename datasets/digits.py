"""scikit-learn's 8×8 digits: 1797 images that come with the package, so that a first run needs no download."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fedarena.datasets.cards.digits import SHA256
from fedarena.datasets.dataset import Dataset, Provenance
from fedarena.datasets.split import SPLIT_SEED, checksum, stratified
from fedarena.rng import Rng

SCALE = 16.0  # each pixel counts the dark points in a 4×4 block


def load(data_dir: Path | None = None) -> Dataset:
    """The digits, split 80/20 within each class by a fixed seed; `data_dir` plays no part."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    x, y = bunch.images.astype(np.uint8)[:, None], bunch.target.astype(np.int64)
    train, test = stratified(y, Rng(SPLIT_SEED).child("digits", "split").numpy())
    sha256 = checksum((x[train], y[train], x[test], y[test]))
    return Dataset(
        name="digits",
        x_train=x[train],
        y_train=y[train],
        x_test=x[test],
        y_test=y[test],
        scale=SCALE,
        n_classes=10,
        provenance=Provenance(
            source="scikit-learn load_digits (test part of UCI Optical Recognition of Handwritten Digits)",
            file=None,
            sha256=sha256,
            verified=sha256 == SHA256,
        ),
    )
