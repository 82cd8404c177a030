"""The collector of reference cycles is held off for a while."""

from __future__ import annotations

import gc
import weakref

import pytest

from fedarena.core.garbage import no_collection


class Knot:
    """An object that refers to itself."""

    def __init__(self) -> None:
        self.itself = self


def lost_while(count: int) -> int:
    """How many of so many knots that nobody holds are collected while others are made."""
    knots = [weakref.ref(Knot()) for _ in range(count)]
    return sum(knot() is None for knot in knots)


def test_nothing_is_collected_meanwhile() -> None:
    assert lost_while(5000) > 0
    with no_collection():
        assert lost_while(5000) == 0


def test_it_ends_with_its_block_and_within_another_it_changes_nothing() -> None:
    with no_collection():
        with pytest.raises(ValueError, match="odd"), no_collection():
            raise ValueError("odd")
        assert not gc.isenabled()
    assert gc.isenabled()
