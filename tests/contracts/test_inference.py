"""The contract of attacks on clients' data."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fedarena.contracts.inference import Watch


def test_a_round_that_is_named_twice_counts_once() -> None:
    """Otherwise an attack could choose how often a round is judged."""
    assert Watch(0, 9, (4, 4, 2, 4, 9)).victims == (4, 2, 9)


@given(st.lists(st.integers(0, 9)))
def test_the_order_of_other_rounds_stays(rounds: list[int]) -> None:
    victims = Watch(0, 9, tuple(rounds)).victims
    assert sorted(victims) == sorted(set(rounds))
    assert list(victims) == sorted(set(rounds), key=rounds.index)
