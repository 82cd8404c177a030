"""SignGuard's clusters: which rows belong together, in whatever order they come."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedarena.defenses.aggregators.geometry import Matrix
from fedarena.defenses.aggregators.signguard import largest_cluster


def shares(positive: list[int]) -> Matrix:
    """What `sign_shares` makes of rows with so many positive values of three, none of them zero."""
    counts = np.array([[p, 0, 3 - p] for p in positive], dtype=np.float64)
    found: Matrix = counts / np.maximum(counts.max(0), 1)
    return found


@pytest.mark.parametrize(
    ("positive", "order"), [([3, 1, 2, 0, 1, 0, 2, 3, 0], [8, 5, 3, 4, 0, 6, 2, 1, 7])], ids=["rounded otherwise"]
)
def test_an_order_in_which_means_round_otherwise(positive: list[int], order: list[int]) -> None:
    """Rows lie a bandwidth apart here, to the last bit of it."""
    x = shares(positive)
    assert np.array_equal(largest_cluster(x)[order], largest_cluster(x[order]))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=4, max_size=16), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(positive: list[int], random: Random) -> None:
    order = list(range(len(positive)))
    random.shuffle(order)
    x = shares(positive)
    assert np.array_equal(largest_cluster(x)[order], largest_cluster(x[order]))


def test_five_alike_are_kept_and_three_others_left() -> None:
    found = largest_cluster(shares([0, 3, 3, 0, 3, 3, 0, 3]))
    assert found.tolist() == [False, True, True, False, True, True, False, True]
