"""The Count Sketch against loops: it is linear, unbiased, and finds what stands out."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedarena.defenses.fetchsgd.count_sketch import count_sketch


@given(st.integers(0, 2**31 - 1), st.integers(1, 40), st.integers(1, 6), st.integers(1, 12))
def test_sketch_and_estimate_are_the_loops(seed: int, entries: int, rows: int, columns: int) -> None:
    hashes = count_sketch(seed, entries, rows, columns)
    g = torch.randn(entries, generator=torch.Generator().manual_seed(seed % 97))
    wanted = torch.zeros(rows, columns)
    for j in range(rows):
        for i in range(entries):
            wanted[j, int(hashes.buckets[j, i]) - j * columns] += hashes.signs[j, i] * g[i]
    sketch = hashes.sketch(g)
    assert torch.allclose(sketch, wanted, atol=1e-5)
    for i, value in enumerate(hashes.estimate(sketch)):
        read = sorted(
            float(hashes.signs[j, i] * sketch[j, int(hashes.buckets[j, i]) - j * columns]) for j in range(rows)
        )
        assert float(value) == pytest.approx((read[(rows - 1) // 2] + read[rows // 2]) / 2, abs=1e-6)


def test_a_sum_of_sketches_is_the_sketch_of_the_sum() -> None:
    hashes = count_sketch(3, 100, 5, 20)
    a, b = torch.randn(2, 100, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(hashes.sketch(a) + 2 * hashes.sketch(b), hashes.sketch(a + 2 * b), atol=1e-5)


def test_one_row_is_unbiased_with_the_variance_of_a_count_sketch() -> None:
    """E U(S)_i = g_i and Var = Σ_{l≠i} g_l²/c, over the hash functions; another constant fails."""
    g = torch.linspace(-1, 2, 50)
    read = torch.stack([(h := count_sketch(seed, 50, 1, 10)).estimate(h.sketch(g)) for seed in range(4000)])
    variance = (g.square().sum() - g.square()) / 10
    assert (read.mean(0) - g).abs().max() < 5 * (variance.max() / 4000).sqrt()
    ratio = float((read.var(0) / variance).mean())
    assert ratio == pytest.approx(1, abs=0.03)
    assert ratio / 10 != pytest.approx(1, abs=0.03)


def test_entries_that_stand_out_are_found() -> None:
    g = 0.01 * torch.randn(2000, generator=torch.Generator().manual_seed(1))
    g[[5, 700, 1999]] = torch.tensor([3.0, -2.0, 4.0])
    hashes = count_sketch(8, 2000, 5, 200)
    assert set(hashes.estimate(hashes.sketch(g)).abs().topk(3).indices.tolist()) == {5, 700, 1999}
