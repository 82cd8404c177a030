"""Downloads of published data sets, converted to our arrays."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedarena.datasets.npz import Array, Arrays
from fedarena.datasets.raw_file import RawFile, download
from fedarena.datasets.raw_formats import read_cifar, read_idx, read_libsvm

IMAGES_PER_PERSON = 10
TRAIN_PER_PERSON = 7
IDX_FILES = (
    *("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"),
    *("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"),
)


@dataclass(frozen=True)
class IdxFiles:
    """A data set in MNIST's format: images and labels for training, images and labels for testing.

    Attributes:
        base: the address that the files' names follow.
        known: size and sha256 of each, in the order of `IDX_FILES`.
    """

    base: str
    known: tuple[tuple[int, str], ...]

    def __call__(self, folder: Path) -> Arrays:
        """Download into `folder`: x uint8 [N, H, W], y int64 [N]."""
        raw = [RawFile(self.base + name, *known) for name, known in zip(IDX_FILES, self.known, strict=True)]
        x_train, y_train, x_test, y_test = (read_idx(download(file, folder)) for file in raw)
        return _arrays((x_train, y_train), (x_test, y_test))


@dataclass(frozen=True)
class CifarTar:
    """CIFAR's binary version in one tar.

    Attributes:
        raw: the tar. train, test: names of the files in it. labels: labels of a row, see `read_cifar`.
    """

    raw: RawFile
    train: tuple[str, ...]
    test: tuple[str, ...]
    labels: int

    def __call__(self, folder: Path) -> Arrays:
        """Download into `folder`: x uint8 [N, 32, 32, 3], y int64 [N]."""
        path = download(self.raw, folder)
        return _arrays(read_cifar(path, self.train, self.labels), read_cifar(path, self.test, self.labels))


@dataclass(frozen=True)
class UspsFiles:
    """USPS as LIBSVM publishes it.

    Attributes:
        train, test: the two files.
    """

    train: RawFile
    test: RawFile

    def __call__(self, folder: Path) -> Arrays:
        """Download into `folder`: x uint8 [N, 16, 16], y int64 [N]."""
        return _arrays(read_libsvm(download(self.train, folder)), read_libsvm(download(self.test, folder)))


def _arrays(train: tuple[Array, Array], test: tuple[Array, Array]) -> Arrays:
    parts = {"train": train, "test": test}
    return {
        **{f"x_{part}": x for part, (x, _) in parts.items()},
        **{f"y_{part}": y.astype(np.int64) for part, (_, y) in parts.items()},
    }


def olivetti_faces(folder: Path) -> Arrays:
    """scikit-learn's Olivetti faces, 64×64: images 1 to 7 of each person for training, 8 to 10 for testing.

    scikit-learn holds the file to its sha256 before it reads it.
    """
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
    return _arrays((x[train], y[train]), (x[~train], y[~train]))
