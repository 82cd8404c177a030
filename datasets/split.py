"""Training and test parts of data that come in one piece, and the checksum of what results."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from fedarena.datasets.npz import Array

TEST_SHARE = 0.2
SPLIT_SEED = 0

Index = npt.NDArray[np.int64]


def stratified(labels: Array, rng: np.random.Generator) -> tuple[Index, Index]:
    """Indices of the training and of the test part, each in ascending order; a fifth of every class for testing.

    Args:
        labels: [N]; a constant one splits all samples alike.
    """
    order = [rng.permutation(np.flatnonzero(labels == k)) for k in np.unique(labels)]
    cuts = [round(TEST_SHARE * len(members)) for members in order]
    test = np.concatenate([members[:cut] for members, cut in zip(order, cuts, strict=True)])
    train = np.concatenate([members[cut:] for members, cut in zip(order, cuts, strict=True)])
    return np.sort(train), np.sort(test)


def checksum(arrays: Iterable[Array]) -> str:
    """sha256 of arrays one after the other (C order, little-endian)."""
    return hashlib.sha256(b"".join(a.astype(a.dtype.newbyteorder("<")).tobytes() for a in arrays)).hexdigest()
