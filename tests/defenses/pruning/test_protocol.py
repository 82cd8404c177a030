"""Gradient pruning: uploads against a loop, and what each form matches."""

from __future__ import annotations

import pytest
import torch
from helpers.changed_uploads import make, read, sent_and_plain
from helpers.dbcl import cnn
from hypothesis import given
from hypothesis import strategies as st

from fedarena.core.tensors import row
from fedarena.defenses.pruning.protocol import largest


@pytest.mark.parametrize(("model", "shape"), [(None, (12,)), (cnn(), (1, 8, 8))])
def test_an_upload_has_the_largest_entries_of_each_tensor(model, shape):
    _, ups, plain = sent_and_plain(make("pruning", model, shape, share=0.75))
    for name, sent in ups.items():
        for s, g in zip(sent, plain[name], strict=True):
            entries = g.flatten().tolist()
            count = -(-len(entries) // 4)
            keep = sorted(range(len(entries)), key=lambda i: -abs(entries[i]))[:count]
            wanted = [value if i in keep else 0.0 for i, value in enumerate(entries)]
            assert s.flatten().tolist() == pytest.approx(wanted, rel=1e-4, abs=1e-7)


@given(st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=20), st.data())
def test_no_entry_left_out_is_larger_than_one_that_is_sent(values, data):
    t = torch.tensor(values)
    kept = largest(t, data.draw(st.integers(1, len(values)))).bool()
    assert kept.any()
    assert not (~kept).any() or t[~kept].abs().max() < t[kept].abs().min()


def test_bytes_are_those_of_numbers_and_places():
    defense = make("pruning", share=0.9)
    _, ups, _ = sent_and_plain(defense)
    count = sum(max(1, -(-t[0].numel() // 10)) for t in ups.values())
    assert defense.sent_bytes(ups) == 3 * 8 * count


@pytest.mark.parametrize("party", ["server", "client"])
def test_the_adaptive_form_matches_what_was_sent_and_nothing_else(party):
    defense = make("pruning", share=0.5)
    (paper,), (adaptive,) = (read(defense, party, form)[0].observations for form in ("paper", "adaptive"))
    x = torch.rand(paper.images, 12)
    y = torch.eye(3)[torch.zeros(paper.images, dtype=torch.long)]
    assert any((t == 0).any() for t in adaptive.target.values())
    for name, whole in paper.simulate(x, y).items():
        left_out = adaptive.target[name] == 0
        assert torch.allclose(adaptive.simulate(x, y)[name], torch.where(left_out, 0.0, whole), atol=1e-6)


def test_the_true_samples_match_in_the_adaptive_form_alone():
    defense = make("pruning", share=0.5)
    _, ups, plain = sent_and_plain(defense)
    (observed,) = read(defense, "server", "adaptive")[0].observations
    seen = row(ups, 1)
    assert all(torch.equal(observed.target[name], t) for name, t in seen.items())
    for name, t in row(plain, 1).items():
        assert torch.allclose(t * (observed.target[name] != 0), observed.target[name], atol=1e-6)
        assert not torch.allclose(t, observed.target[name], atol=1e-6)
