"""Small tables that come with scikit-learn: one of classes, one of numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fedarena.core.rng import Rng
from fedarena.datasets.cards import breast_cancer as breast_cancer_card
from fedarena.datasets.cards import diabetes as diabetes_card
from fedarena.datasets.dataset import SPLIT_SEED, Dataset, Provenance, checksum, stratified
from fedarena.datasets.npz import Array
from fedarena.datasets.tables import to_unit


def breast_cancer(data_dir: Path | None = None) -> Dataset:
    """Tumours in 30 columns, 0 malignant and 1 benign, split 80/20 within each class; `data_dir` is ignored."""
    from sklearn.datasets import load_breast_cancer

    bunch, card = load_breast_cancer(), breast_cancer_card
    y = bunch.target.astype(np.int64)
    return _table(card.CARD.name, bunch.data, y, y, 2, "scikit-learn load_breast_cancer", card.SHA256)


def diabetes(data_dir: Path | None = None) -> Dataset:
    """Patients in 10 columns and the course of their disease, split 80/20; `data_dir` is ignored."""
    from sklearn.datasets import load_diabetes

    bunch, card = load_diabetes(scaled=False), diabetes_card
    y = (bunch.target / card.UNIT).astype(np.float32)
    alike = np.zeros(len(y), np.int64)
    return _table(card.CARD.name, bunch.data, y, alike, 0, "scikit-learn load_diabetes, unscaled", card.SHA256)


def _table(name: str, x: Array, y: Array, strata: Array, n_classes: int, source: str, known: str) -> Dataset:
    """Split by a fixed seed within each of `strata` [N], then scale columns to [0, 1]."""
    train, test = stratified(strata, Rng(SPLIT_SEED).child(name, "split").numpy())
    x_train, x_test = to_unit(x[train], x[test])
    sha256 = checksum((x_train, y[train], x_test, y[test]))
    return Dataset(
        name=name,
        x_train=x_train,
        y_train=y[train],
        x_test=x_test,
        y_test=y[test],
        scale=1.0,
        n_classes=n_classes,
        provenance=Provenance(source=source, file=None, sha256=sha256, verified=sha256 == known),
    )
