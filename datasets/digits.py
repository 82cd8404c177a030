"""scikit-learn's 8×8 digits: 1797 images that come with the package, so that a first run needs no download.

Beside its class every image has the attribute `bold`, so that property inference can be tried without a download.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fedarena.core.rng import Rng
from fedarena.datasets.cards.digits import SHA256
from fedarena.datasets.dataset import SPLIT_SEED, Dataset, Provenance, checksum, stratified
from fedarena.datasets.npz import Array

SCALE = 16.0  # each pixel counts the dark points in a 4×4 block
N_CLASSES = 10


def load(data_dir: Path | None = None) -> Dataset:
    """The digits, split 80/20 within each class by a fixed seed; `data_dir` plays no part."""
    x, y = _images()
    train, test = stratified(y, Rng(SPLIT_SEED).child("digits", "split").numpy())
    typical = np.array([np.median(ink(x[train][y[train] == k])) for k in range(N_CLASSES)])
    sha256 = checksum((x[train], y[train], x[test], y[test]))
    return Dataset(
        name="digits",
        x_train=x[train],
        y_train=y[train],
        x_test=x[test],
        y_test=y[test],
        scale=SCALE,
        n_classes=N_CLASSES,
        provenance=Provenance(
            source="scikit-learn load_digits (test part of UCI Optical Recognition of Handwritten Digits)",
            file=None,
            sha256=sha256,
            verified=sha256 == SHA256,
        ),
        attributes={"bold": (bold(x[train], y[train], typical), bold(x[test], y[test], typical))},
    )


@cache
def _images() -> tuple[Array, Array]:
    """All images and their classes, read once a process; whoever changes a selection of them changes a copy.

    The file is read as scikit-learn's `load_digits` reads it, which takes a second to import. That function is asked
    where the file lies elsewhere.
    """
    package = find_spec("sklearn")  # finds the package without importing it
    folders = (package.submodule_search_locations or ()) if package else ()
    for path in (Path(folder) / "datasets" / "data" / "digits.csv.gz" for folder in folders):
        if path.exists():
            table = np.loadtxt(path, delimiter=",")  # 64 pixels, and the class
            return table[:, :-1].astype(np.uint8).reshape(-1, 1, 8, 8), table[:, -1].astype(np.int64)
    from sklearn.datasets import load_digits

    bunch = load_digits()
    return bunch.images.astype(np.uint8)[:, None], bunch.target.astype(np.int64)


def ink(x: Array) -> npt.NDArray[np.int64]:
    """Sum of the pixels of each image [N], in the file's units."""
    total: npt.NDArray[np.int64] = x.reshape(len(x), -1).sum(1, dtype=np.int64)
    return total


def bold(x: Array, y: Array, typical: Array) -> npt.NDArray[np.int8]:
    """1 if an image has at least the ink that is typical of its class, else 0 [N].

    The typical ink is that of the image's own class, because some digits take more ink than others. So the class does
    not predict the attribute.

    Args:
        x: images [N, C, H, W].
        y: classes [N].
        typical: ink by class.
    """
    return (ink(x) >= typical[y]).astype(np.int8)
