"""Whether numbers fall into groups, by the gap statistic (Tibshirani, Walther & Hastie 2001), and into which two.

W_k = least sum of squared distances to the means of k groups
gap(k) = log mean W_k* − log W_k, W_k* of draws from the uniform law on [0, 1];  s_k = √(1 + 1/B) std log W_k*

The number of groups is the smallest k with gap(k) ≥ gap(k + 1) − s_{k+1}. It is above 1 unless that holds for k = 1,
so that W_1 and W_2 decide. On the line both are found exactly: two groups are cut apart at one place.
"""

from __future__ import annotations

import numpy as np

from fedarena.defenses.aggregators.geometry import Matrix


def has_groups(values: Matrix, references: Matrix) -> bool:
    """Whether the values [n] fall into two groups or more.

    Args:
        references: [B, n], draws from the uniform law on [0, 1].
    """
    low, high = values.min(), values.max()
    if len(values) < 3 or high <= low:
        return False
    one, two = spreads(((values - low) / (high - low))[None])
    if two[0] <= 0:
        return True  # no more than two different values
    ones, twos = spreads(references)
    gaps = np.log(ones.mean()) - np.log(one[0]), np.log(twos.mean()) - np.log(two[0])
    error = np.sqrt(1 + 1 / len(references)) * np.log(twos).std()
    return bool(gaps[0] < gaps[1] - error)


def spreads(values: Matrix) -> tuple[Matrix, Matrix]:
    """[B, n] → [B], [B]: W_1 and W_2 of each row."""
    splits = _splits(np.sort(values, axis=1))
    return splits[:, -1], splits[:, :-1].min(axis=1)


def upper_group(values: Matrix) -> np.typing.NDArray[np.bool_]:
    """[n] → [n]: the members of the group with the larger mean, of the best two groups."""
    ascending = np.sort(values)
    cut = int(_splits(ascending[None])[0, :-1].argmin())
    upper: np.typing.NDArray[np.bool_] = values > ascending[cut]
    return upper


def _splits(ascending: Matrix) -> Matrix:
    """[B, n] ascending → [B, n]: W of the groups 0…i and i + 1…n − 1; in the last column, of one group."""
    n = ascending.shape[1]
    centered = ascending - ascending.mean(axis=1, keepdims=True)
    sums, squares = centered.cumsum(axis=1), (centered**2).cumsum(axis=1)
    count = np.arange(1, n + 1)
    below = squares - sums**2 / count
    rest, left = sums[:, -1:] - sums, squares[:, -1:] - squares
    above = left - rest**2 / np.maximum(n - count, 1)
    found: Matrix = np.maximum(below, 0) + np.maximum(above, 0)
    return found
