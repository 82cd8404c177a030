"""Downloads by the libraries of the field, converted to our arrays. They check their own raw files' checksums."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedarena.core.torchvision_import import import_torchvision
from fedarena.datasets.npz import Array, Arrays

IMAGES_PER_PERSON = 10
TRAIN_PER_PERSON = 7


@dataclass(frozen=True)
class FromTorchvision:
    """A download by one of torchvision's data set classes.

    Attributes:
        class_name: a class of torchvision.datasets with `root, train, download`, `data` and `targets`.
    """

    class_name: str

    def __call__(self, folder: Path) -> Arrays:
        """Download both parts into `folder`: x uint8 [N, H, W(, C)], y int64 [N]."""
        import_torchvision()
        from torchvision import datasets

        make = getattr(datasets, self.class_name)
        out: dict[str, Array] = {}
        for part, train in (("train", True), ("test", False)):
            data = make(root=str(folder), train=train, download=True)
            out[f"x_{part}"] = np.asarray(data.data, dtype=np.uint8)
            out[f"y_{part}"] = np.asarray(data.targets, dtype=np.int64)
        return out


def olivetti_faces(folder: Path) -> Arrays:
    """scikit-learn's Olivetti faces, 64×64: images 1 to 7 of each person for training, 8 to 10 for testing."""
    from sklearn.datasets import fetch_olivetti_faces

    bunch = fetch_olivetti_faces(data_home=str(folder), n_retries=1)
    return split_people(np.rint(bunch.images * 255).astype(np.uint8), np.asarray(bunch.target, dtype=np.int64))


def split_people(x: Array, y: Array) -> Arrays:
    """Seven images a person for training, three for testing.

    Args:
        x: images [N, H, W], ten a person, sorted by person.
        y: persons [N].
    """
    train = np.arange(len(y)) % IMAGES_PER_PERSON < TRAIN_PER_PERSON
    return {"x_train": x[train], "y_train": y[train], "x_test": x[~train], "y_test": y[~train]}
