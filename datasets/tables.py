"""Rows of a table, with each column scaled to [0, 1], the range of pixels."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fedarena.datasets.npz import Array

Rows = npt.NDArray[np.float32]


def to_unit(train: Array, test: Array) -> tuple[Rows, Rows]:
    """x ← (x − low)/(high − low), column by column, with the extremes of the training part.

    Values of the test part outside of [low, high] are cut to it. A constant column becomes 0.

    Args:
        train, test: [N, D], finite.

    Returns:
        Both parts, float32 in [0, 1].
    """
    low, high = train.min(0).astype(np.float64), train.max(0).astype(np.float64)
    span = np.where(high > low, high - low, 1.0)

    def scaled(x: Array) -> Rows:
        unit: Rows = ((np.clip(x, low, high) - low) / span).astype(np.float32)
        return unit

    return scaled(train), scaled(test)
