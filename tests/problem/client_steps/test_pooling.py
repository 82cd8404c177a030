"""Pooling by strided slices, held to torch's own."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from fedarena.problem.client_steps.pooling import StridedMaxPool2d, replacements


@given(st.integers(0, 99), st.integers(0, 3), st.integers(1, 3), st.integers(2, 9), st.integers(2, 9), st.booleans())
@settings(max_examples=60, deadline=None)
def test_strided_pooling_is_bit_equal(seed, n, channels, h, w, last):
    x = torch.randn(n, channels, h, w, generator=torch.Generator().manual_seed(seed))
    x = x.to(memory_format=torch.channels_last) if last else x
    assert torch.equal(StridedMaxPool2d()(x), nn.MaxPool2d(2)(x) if n else x.new_empty(0, channels, h // 2, w // 2))


def test_strided_pooling_hands_on_what_is_no_number():
    x = torch.zeros(1, 1, 2, 4)
    x[0, 0, 1, 1], x[0, 0, 0, 3] = float("nan"), float("inf")
    assert torch.equal(StridedMaxPool2d()(x).isnan(), nn.MaxPool2d(2)(x).isnan())
    assert StridedMaxPool2d()(x)[0, 0, 0, 1] == float("inf")


@pytest.mark.parametrize(
    "other",
    [
        nn.MaxPool2d(3),
        nn.MaxPool2d(2, stride=1),
        nn.MaxPool2d(2, padding=1),
        nn.MaxPool2d(2, dilation=2),
        nn.MaxPool2d(2, ceil_mode=True),
        nn.MaxPool2d(2, return_indices=True),
        nn.MaxPool2d((2, 1)),
        nn.AvgPool2d(2),
        type("Own", (nn.MaxPool2d,), {})(2),
    ],
)
def test_only_two_by_two_max_pooling_is_replaced(other):
    same = [nn.MaxPool2d(2), nn.MaxPool2d((2, 2), (2, 2))]
    assert set(replacements(nn.Sequential(other, *same))) == {id(module) for module in same}
