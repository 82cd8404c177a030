"""Label flipping against its definition."""

from __future__ import annotations

import pytest
import torch
from helpers.poisoning import knowledge, make, problem
from hypothesis import given, settings
from hypothesis import strategies as st

from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.problem.task import Batch


def test_class_i_becomes_h_minus_1_minus_i() -> None:
    batch = Batch(torch.zeros(1, 4, 1, 8, 8), torch.tensor([[0, 3, 5, 9]]))
    assert make("label-flip", knowledge()).batch(batch, 0, 0, Rng(0)).y.tolist() == [[9, 6, 4, 0]]


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=20))
def test_reversing_twice_is_nothing(labels: list[int]) -> None:
    attack, y = make("label-flip", knowledge()), torch.tensor([labels])
    batch = Batch(torch.zeros(1, len(labels), 1, 8, 8), y)
    once = attack.batch(batch, 0, 0, Rng(0))
    assert torch.equal(attack.batch(once, 1, 0, Rng(0)).y, y)
    assert torch.equal(once.x, batch.x)


def test_random_labels_are_never_the_right_ones_and_all_others_alike() -> None:
    y = torch.full((1, 9000), 4)
    flipped = make("label-flip", knowledge(), labels="random").batch(Batch(torch.zeros(1, 9000, 1), y), 0, 0, Rng(0)).y
    counts = torch.bincount(flipped[0], minlength=10)
    assert counts[4] == 0
    others = counts[torch.arange(10) != 4]
    assert int(others.min()) > 850  # expected 1000, standard deviation 30
    assert int(others.max()) < 1150


def test_all_labels_become_the_target() -> None:
    batch = Batch(torch.zeros(1, 4, 1, 8, 8), torch.tensor([[0, 3, 2, 9]]))
    attack = make("label-flip", knowledge(), labels="one", target=2)
    assert attack.batch(batch, 0, 0, Rng(0)).y.tolist() == [[2, 2, 2, 2]]
    with pytest.raises(UserError, match="label-flip: option 'target' is 10, allowed: 0 to 9 with 10 classes"):
        make("label-flip", knowledge(), labels="one", target=10)


def test_one_flipped_sample_is_drawn_from_the_pool_each_round() -> None:
    on = knowledge()
    attack, batch = make("label-flip", on, samples="one"), problem().batch(0, Rng(0))
    pool = on.data.inputs(torch.arange(len(on.data.y)))
    drawn = set()
    for t in range(10):
        poisoned = attack.batch(batch, t, 0, Rng(t))
        assert poisoned.x.shape == (1, 1, *on.task.input_shape)
        found = [i for i in range(len(pool)) if torch.equal(pool[i], poisoned.x[0, 0])]
        assert 9 - int(poisoned.y) in [int(on.data.y[i]) for i in found]
        drawn.update(found)
    assert len(drawn) > 5
