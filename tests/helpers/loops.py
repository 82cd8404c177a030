"""Vectors as lists of numbers, for definitions that are written with loops."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

Row = Sequence[float]


def assert_near(found: Tensor, expected: Sequence[float], rtol: float = 1e-7) -> None:
    wanted = torch.tensor(expected, dtype=found.dtype)
    scale = max(float(wanted.abs().max()), 1.0)
    torch.testing.assert_close(found, wanted, rtol=rtol, atol=rtol * scale)


def distance(a: Row, b: Row) -> float:
    return math.sqrt(sum((s - t) ** 2 for s, t in zip(a, b, strict=True)))


def norm(a: Row) -> float:
    return distance(a, [0.0] * len(a))


def average(rows: Sequence[Row]) -> list[float]:
    return [sum(column) / len(rows) for column in zip(*rows, strict=True)]


def caf(rows: Sequence[Row], f: int, dead_rows_count: bool = False) -> list[float]:
    """CAF with the covariance matrix of the coordinates.

    Args:
        dead_rows_count: whether the largest τ is taken over rows without weight, too, as in ByzFL.
    """
    n, d = len(rows), len(rows[0])
    c, least, best = [1.0] * n, math.inf, average(rows)
    while sum(c) > n - 2 * f:
        mean = [sum(w * row[j] for w, row in zip(c, rows, strict=True)) / sum(c) for j in range(d)]
        away = [[row[j] - mean[j] for j in range(d)] for row in rows]
        covariance = np.zeros((d, d))
        for w, a in zip(c, away, strict=True):
            covariance += w / sum(c) * np.outer(a, a)
        values, vectors = np.linalg.eigh(covariance)
        if values[-1] < least:
            least, best = float(values[-1]), mean
        tau = [sum(s * float(t) for s, t in zip(a, vectors[:, -1], strict=True)) ** 2 for a in away]
        largest = max(t for t, w in zip(tau, c, strict=True) if w > 0 or dead_rows_count)
        c = [w * (1 - t / largest) if w > 0 else 0.0 for w, t in zip(c, tau, strict=True)]
    return best
