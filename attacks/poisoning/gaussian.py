"""Gaussian uploads: N(0, s²) on every coordinate, fresh for each colluder and round.

With s the noise of the defense itself, the upload is an honest one without its signal (Xiang et al. 2023,
Section 3.2). If the defense adds no noise, it is the classical N(0, 200²) of Blanchard et al. 2017, Section 6.
"""

from __future__ import annotations

import torch

from fedarena.attacks.poisoning.cards.gaussian import CLASSICAL, Options
from fedarena.contracts.poisoning import Poisoning, RoundView
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, flatten, row, shaped


class Gaussian(Poisoning):
    """The attack; see the module's docstring and `fedarena.attacks.poisoning.cards.gaussian.Options`."""

    options: Options
    follows = False
    tunes = {"std": (0.001, 0.01, 0.1, 1.0, 10.0, CLASSICAL)}  # noqa: RUF012  (a ClassVar of the base)

    @property
    def std(self) -> float:
        """s."""
        if self.options.std is not None:
            return self.options.std
        return self.knowledge.defense.noise_std or CLASSICAL

    @property
    def strengths(self) -> dict[str, float]:
        return {"std": self.std} if self.options.std is None else {}

    def craft(self, view: RoundView, memory: Tensors, rng: Rng) -> tuple[Tensors, Tensors]:
        flat = flatten(like := self._like(view, rng.child("shape")))
        noise = torch.randn(view.size, len(flat), generator=rng.child("noise").torch()).to(flat)
        return shaped(self.std * noise, like), memory

    def _like(self, view: RoundView, rng: Rng) -> Tensors:
        """An upload, for its names and shapes, which may be others than the broadcast's."""
        if view.own:  # a client of another framework, which has no data here
            return row(view.own, 0)
        return self.knowledge.defense.expected_upload(view.down, *self.knowledge.data.draw(1, rng))
