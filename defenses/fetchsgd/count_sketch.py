"""The Count Sketch of a vector (Charikar, Chen, Farach-Colton 2002), as a linear map, and what can be read off it.

    S(g)[j, b] = Σ_{i: h_j(i) = b} s_j(i) g_i                    j = 1 … r, b = 1 … c
    U(S)_i     = median_j s_j(i) S[j, h_j(i)]

h_j(i) is uniform on the c buckets and s_j(i) a random sign, both drawn from a seed. S is linear, so that the mean of
sketches is the sketch of the mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class CountSketch:
    """Hash functions.

    Attributes:
        buckets: h_j(i) + c·j [r, d], so that all rows lie in one vector. signs: s_j(i) [r, d]. columns: c.
    """

    buckets: Tensor
    signs: Tensor
    columns: int

    def sketch(self, g: Tensor) -> Tensor:
        """S(g) [r, c] of g [d]; differentiable in g."""
        rows = len(self.buckets)
        signed = (self.signs.to(g) * g).reshape(-1)
        return (
            g.new_zeros(rows * self.columns)
            .index_add(0, self.buckets.to(g.device).reshape(-1), signed)
            .reshape(rows, self.columns)
        )

    def estimate(self, sketch: Tensor) -> Tensor:
        """U(S) [d] of a sketch [r, c]; of an even number of rows the mean of the two in the middle."""
        readings = self.signs.to(sketch) * sketch.reshape(-1)[self.buckets.to(sketch.device)]
        ordered, rows = readings.sort(0).values, len(readings)
        return (ordered[(rows - 1) // 2] + ordered[rows // 2]) / 2


@lru_cache(maxsize=8)
def count_sketch(seed: int, entries: int, rows: int, columns: int) -> CountSketch:
    """The hash functions of a seed.

    Args:
        seed: 0 ≤ seed < 2³². entries: d. rows, columns: r and c.
    """
    generator = torch.Generator().manual_seed(seed)
    buckets = torch.randint(columns, (rows, entries), generator=generator)
    signs = 1.0 - 2.0 * torch.randint(2, (rows, entries), generator=generator)
    return CountSketch(buckets + columns * torch.arange(rows)[:, None], signs, columns)
