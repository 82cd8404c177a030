"""Random streams depend on seed and path, and on nothing else."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedarena.core.rng import LARGEST_SEED, Rng
from fedarena.records.json_schema import WHOLE

names = st.lists(st.integers(-10, 10) | st.text(max_size=4), max_size=4).map(tuple)

PINNED = 17977191557214370878
PINNED_TORCH = [641, 713, 904]
PINNED_NUMPY = [783, 787, 47]


def test_streams_are_the_same_on_every_machine() -> None:
    rng = Rng(0).child("batch", 3, 1)
    assert rng.integer() == PINNED
    assert rng.integer(31) == PINNED >> 33
    assert torch.randint(0, 1000, (3,), generator=rng.torch()).tolist() == PINNED_TORCH
    assert rng.numpy().integers(0, 1000, 3).tolist() == PINNED_NUMPY


@given(st.integers(), names, names)
def test_a_child_is_its_path(seed: int, first: tuple[str | int, ...], second: tuple[str | int, ...]) -> None:
    assert Rng(seed).child(*first).child(*second) == Rng(seed).child(*first, *second)


@given(st.tuples(st.integers(), names), st.tuples(st.integers(), names))
def test_different_paths_give_different_streams(
    one: tuple[int, tuple[str | int, ...]], other: tuple[int, tuple[str | int, ...]]
) -> None:
    same = one == other
    assert (Rng(*one).integer() == Rng(*other).integer()) == same


@given(st.integers(), names, st.integers(1, 64))
def test_integers_have_the_bits_asked_for(seed: int, path: tuple[str | int, ...], bits: int) -> None:
    assert 0 <= Rng(seed, path).integer(bits) < 2**bits


def test_integers_are_uniform() -> None:
    draws = np.array([Rng(0).child(i).integer(8) for i in range(4096)])
    chi2 = float(((np.bincount(draws, minlength=256) - 16.0) ** 2 / 16.0).sum())
    assert 170 < chi2 < 350  # 255 degrees of freedom: mean 255, standard deviation 22.6


def test_each_call_starts_the_stream_again_and_no_global_generator_moves() -> None:
    rng = Rng(7).child("noise")
    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    torch.testing.assert_close(torch.randn(5, generator=rng.torch()), torch.randn(5, generator=rng.torch()))
    np.testing.assert_array_equal(rng.numpy().normal(size=5), rng.numpy().normal(size=5))
    assert torch.equal(before[0], torch.get_rng_state())
    np.testing.assert_array_equal(before[1], np.random.get_state()[1])


def test_a_reader_of_a_board_tells_the_largest_seed_from_its_neighbours() -> None:
    assert float(LARGEST_SEED - 1) != float(LARGEST_SEED) != float(LARGEST_SEED + 1)
    assert float(LARGEST_SEED + 1) == float(LARGEST_SEED + 2)
    assert WHOLE.fullmatch(str(LARGEST_SEED))
