"""The contract of attacks on clients' data."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fedarena.contracts.inference import LAST_ROUNDS, OTHER_ROUNDS, Watch
from fedarena.core.rng import Rng
from fedarena.problem.schedule import Schedule


def test_a_round_that_is_named_twice_counts_once() -> None:
    """Otherwise an attack could choose how often a round is judged."""
    assert Watch(0, 9, (4, 4, 2, 4, 9)).victims == (4, 2, 9)


@given(st.lists(st.integers(0, 9)))
def test_the_order_of_other_rounds_stays(rounds: list[int]) -> None:
    victims = Watch(0, 9, tuple(rounds)).victims
    assert sorted(victims) == sorted(set(rounds))
    assert list(victims) == sorted(set(rounds), key=rounds.index)


WINDOWS = st.tuples(st.integers(0, 60), st.integers(1, 60), st.integers(1, 60)).filter(lambda w: w[0] + w[1] <= 100)
"""First round, length, and how many of its rounds are attacked at most."""


def window(first: int, size: int, count: int) -> Watch:
    usable = max(1, size - 1)
    n = min(count, usable)
    return Watch(first, first + size - 1, tuple(first + i * usable // n for i in range(n)))


@given(WINDOWS, st.integers(0, 9))
def test_other_parts_overlap_with_nothing_and_are_as_long_as_there_is_room(w: tuple[int, int, int], seed: int) -> None:
    own, schedule = window(*w), Schedule(rounds=100)
    parts = own.elsewhere(schedule, Rng(seed))
    spans = [{*range(p.first, p.last + 1)} for p in (own, *parts.values())]
    assert sum(map(len, spans)) == len(set().union(*spans))
    assert max(max(s) for s in spans) < 100
    for part in parts.values():
        assert len(part.victims) <= len(own.victims)
        assert part.last - part.first <= own.last - own.first
        assert {*part.victims} <= {*range(part.first, part.last + 1)}
        assert w[1] == 1 or part.last not in part.victims  # a client learns an upload from the next broadcast
    if own.last < 98:
        assert parts[LAST_ROUNDS].last == 99
    if w[1] <= max(own.first, 99 - own.last - w[1]):  # there is room beside the last rounds
        assert [v - parts[OTHER_ROUNDS].first for v in parts[OTHER_ROUNDS].victims] == [
            v - own.first for v in own.victims
        ]


def test_the_place_of_other_rounds_is_drawn_and_each_is_as_likely() -> None:
    own = Watch(10, 19, (10, 12))
    starts = [own.elsewhere(Schedule(rounds=42), Rng(seed))[OTHER_ROUNDS].first for seed in range(400)]
    assert {*starts} == {0, *range(20, 23)}
    assert all(60 < starts.count(start) < 140 for start in {*starts})


def test_what_is_written_down_before_a_victim_moves_with_it() -> None:
    own = Watch(2, 9, (6,), near=(2, 0))
    last = own.elsewhere(Schedule(rounds=30), Rng(0))[LAST_ROUNDS]
    assert (list(own.written), list(last.written)) == ([4, 5, 6], [24, 25, 26])


def test_an_attack_on_the_whole_training_has_no_other_part() -> None:
    assert Watch(0, 19, (0, 7)).elsewhere(Schedule(rounds=20), Rng(0)) == {}
    assert Watch(0, 18, (0, 7)).elsewhere(Schedule(rounds=20), Rng(0)) == {}
    assert [*Watch(0, 0, (0,)).elsewhere(Schedule(rounds=2), Rng(0))] == [LAST_ROUNDS]
