"""What a party sees of single samples, where it is an affine map of them: A_y x + c_y for a sample x of label y.

A_y and c_y are found by playing the protocol on single pixels.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.func import vmap

from fedarena.attacks.reconstruction.helpers.first_layer import PLAYS, Affine
from fedarena.attacks.reconstruction.helpers.matching import relative_squares
from fedarena.contracts.inference import Reconstruction
from fedarena.contracts.observation import Observation
from fedarena.contracts.view import View
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, flatten

STEP = 0.25
"""By how much a pixel is moved to find A."""
ENTRIES = 10**8
"""Entries of A, at most. Where A has more, numbers that were seen are added up in groups, with random signs."""


@dataclass(frozen=True)
class Play:
    """Plays the protocol on samples of one label.

    Attributes:
        label: as simulators take it, [1, n_classes], or numbers [1].
        group, sign: of each number that was seen, [k'].
        numbers: how many groups there are, k.
        probe: a sample [d], at which the map is checked.
    """

    view: View
    seen: Observation
    label: Tensor
    group: Tensor
    sign: Tensor
    numbers: int
    probe: Tensor

    def sums(self, tensors: Tensors) -> Tensor:
        """What was seen, or would have been [k]; signed sums where it is too much."""
        values = flatten(tensors)
        if self.numbers == len(self.group):
            return values
        return values.new_zeros(self.numbers).index_add(0, self.group, self.sign * values)

    def __call__(self, x: Tensor) -> Tensor:
        """A sample [d] → what would have been seen of it [k]."""
        return self.sums(self.seen.simulate(x.reshape(1, *self.view.input_shape), self.label))

    @torch.no_grad()
    def affine(self, x: Tensor) -> tuple[Tensor, Affine, float]:
        """What was seen, what is seen of samples near x [d], and the variance of what is seen around that.

        All are in coordinates of the span of A, of which there are at most d. White noise stays white in them. The
        variance is that of the protocol's noise, and how far the probe is from its affine image: by rounding, such
        as that of a difference of two losses, or since the protocol is not affine.
        """
        at, other = x.to(self.label), self.probe.to(self.label)
        there = self(at).double()
        # The method has a name: of an object PyTorch would print every tensor instead.
        moved = vmap(self.__call__, chunk_size=PLAYS)(at + STEP * torch.eye(len(at)).to(at)).double()
        span, a = torch.linalg.qr((moved - there).T / STEP)
        near = Affine(a, span.T @ there - a @ at.double())
        off = span.T @ self(other).double() - near(other.double())
        shown = span.T @ self.sums(self.seen.target).double()
        return shown, near, self.seen.noise_std**2 + float(off.square().mean())

    def reconstruction(self, x: Tensor) -> Reconstruction:
        """The sample as an answer, with its distance from what was seen."""
        image = x.to(self.label).reshape(1, *self.view.input_shape)
        match = float(relative_squares(self.seen.target)(self.seen.simulate(image, self.label)))
        labels = self.label.argmax(1) if self.view.n_classes else self.label
        return Reconstruction(image, labels, match, len(x) + 2)


def plays_of(view: View, seen: Observation, probe: Tensor, rng: Rng) -> list[Play]:
    """One for each class. Where labels are numbers there is one, for ½."""
    like = next(t for t in seen.target.values() if t.is_floating_point())
    numbers = sum(t.numel() for t in seen.target.values())
    k = min(numbers, ENTRIES // torch.Size(view.input_shape).numel())
    group = torch.randint(k, (numbers,), generator=rng.child("group").torch()).to(like.device)
    sign = torch.randint(2, (numbers,), generator=rng.child("sign").torch()).to(like) * 2 - 1
    labels = torch.eye(view.n_classes) if view.n_classes else torch.tensor([[0.5]])
    shape = (1, view.n_classes) if view.n_classes else (1,)
    return [
        Play(view, seen=seen, label=y.to(like).reshape(shape), group=group, sign=sign, numbers=k, probe=probe)
        for y in labels
    ]
