"""QSGD: levels against a loop, the lemma of its paper, and bytes."""

from __future__ import annotations

import math

import pytest
import torch
from helpers.changed_uploads import make, sent_and_plain
from hypothesis import given
from hypothesis import strategies as st

from fedarena.core.tensors import rows
from fedarena.defenses.qsgd.protocol import quantised


@given(st.integers(0, 10_000), st.integers(1, 30), st.integers(1, 7), st.integers(1, 12))
def test_levels_are_those_of_the_loop(seed, entries, levels, bucket):
    generator = torch.Generator().manual_seed(seed)
    v, drawn = torch.randn(entries, generator=generator).double(), torch.rand(entries, generator=generator)
    for begin in range(0, entries, bucket):
        part = v[begin : begin + bucket]
        length = math.sqrt(sum(float(e) ** 2 for e in part))
        for i, e in enumerate(part.tolist(), begin):
            height = abs(e) * levels / length
            level = math.floor(height) + (float(drawn[i]) < height - math.floor(height))
            wanted = length * math.copysign(level / levels, e)
            assert float(quantised(v, drawn, levels, bucket)[i]) == pytest.approx(wanted, rel=1e-9)


def test_a_bucket_of_zeros_stays_zero():
    v = torch.tensor([0.0, 0.0, 3.0, -4.0])
    assert torch.equal(quantised(v, torch.full((4,), 0.99), 1, 2), torch.tensor([0.0, 0.0, 0.0, 0.0]))
    assert torch.equal(quantised(v, torch.zeros(4), 1, 2), torch.tensor([0.0, 0.0, 5.0, -5.0]))


@pytest.mark.parametrize("levels", [1, 7])
def test_it_is_unbiased_and_within_the_variance_of_lemma_3_1(levels):
    d, draws = 100, 4000
    generator = torch.Generator().manual_seed(0)
    v = torch.randn(d, generator=generator)
    rounded = torch.stack([quantised(v, torch.rand(d, generator=generator), levels, d) for _ in range(draws)])
    variance = rounded.var(0)
    assert (rounded.mean(0) - v).abs().max() < 5 * (variance.max() / draws).sqrt()
    bound = min(d / levels**2, math.sqrt(d) / levels) * float(v.square().sum())
    assert 0.1 * bound < float(variance.sum()) <= bound


def test_an_upload_has_few_values_and_their_bytes():
    defense = make("qsgd", bits=2, bucket=50)
    _, ups, plain = sent_and_plain(defense)
    d = defense.entries
    for sent, whole in zip(rows(ups), rows(plain), strict=True):
        for s, g in zip(sent.split(50), whole.split(50), strict=True):
            assert set((s / g.norm()).round(decimals=4).abs().tolist()) <= {0.0, 1.0}
            assert not ((s * g) < 0).any()
    assert defense.sent_bytes(ups) == 3 * (math.ceil(2 * d / 8) + 4 * math.ceil(d / 50))
