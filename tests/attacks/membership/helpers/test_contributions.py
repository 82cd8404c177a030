"""What a candidate alone would have given, of one copy and of as many as there were samples."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from helpers.membership_views import digits, play
from torch import Tensor

from fedarena.attacks.membership.helpers.contributions import compared, contributions, cosines, differences
from fedarena.contracts.observation import Candidates, Simulator
from fedarena.contracts.simulators import PlainGradient
from fedarena.core.tensors import Tensors, flatten


@dataclass(frozen=True)
class Copied:
    """A simulator that is no `PlainGradient`, so that it gets as many copies as there were samples."""

    simulate: Simulator

    def __call__(self, x: Tensor, y: Tensor) -> Tensors:
        return self.simulate(x, y)


def test_a_plain_gradient_of_one_copy_is_that_of_many() -> None:
    """Of one client, and of the mean of clients that hold unlike numbers of samples."""
    view, _ = play(batch=4, rounds=1)
    (seen,) = view.observations
    assert isinstance(seen.simulate, PlainGradient)
    x, y = digits()
    candidates, which = Candidates(x[:9], y[:9]), torch.tensor([0, 3, 8])
    two = replace(seen.simulate, task=replace(seen.simulate.task, sizes=(7, 4)), clients=(0, 1))
    for simulate, images in ((seen.simulate, 4), (two, 8)):
        plain = replace(seen, simulate=simulate, images=images)
        one, many = (
            contributions(replace(plain, simulate=s), candidates, which, 10) for s in (simulate, Copied(simulate))
        )
        assert torch.allclose(one, many, atol=1e-6)


def test_comparisons_are_those_of_each_candidate() -> None:
    view, _ = play(batch=4, rounds=1)
    (seen,) = view.observations
    x, y = digits()
    candidates, which = Candidates(x[:200], y[:200]), torch.arange(0, 200, 2)
    v, own = flatten(seen.target).double(), contributions(seen, candidates, which, 10)
    slow = torch.stack([v.square().sum() - (v - a).square().sum() for a in own])
    assert torch.allclose(compared(seen, candidates, which, 10, differences), slow)
    angles = torch.stack([a @ v / (a.norm() * v.norm()) for a in own])
    assert torch.allclose(compared(seen, candidates, which, 10, cosines), angles)
    assert cosines(torch.zeros(2, 3), torch.ones(3)).tolist() == [0, 0]
