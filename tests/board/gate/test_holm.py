"""Holm's method, by hand and by its definition."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedarena.board.gate.holm import adjusted


def test_adjusted_p_values_equal_those_computed_by_hand() -> None:
    # Sorted: 0.01·4 = 0.04, 0.012·3 = 0.036 raised to 0.04, 0.03·2 = 0.06, 0.9·1.
    assert adjusted([0.03, 0.01, 0.9, 0.012]) == pytest.approx([0.06, 0.04, 0.9, 0.04])
    assert adjusted([0.6, 0.5]) == [1.0, 1.0]
    assert adjusted([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.floats(0.001, 0.5))
def test_adjusted_p_values_reject_what_the_step_down_method_rejects(ps: list[float], rate: float) -> None:
    left = sorted(range(len(ps)), key=ps.__getitem__)
    rejected = set()
    # One after another, the least first, against the rate over what is left; the first that stays ends it.
    while left and ps[left[0]] * len(left) <= rate:
        rejected.add(left.pop(0))
    assert {i for i, p in enumerate(adjusted(ps)) if p <= rate} == rejected
