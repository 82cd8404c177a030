"""Batches of the attacker's own samples; the attacker knows which of them have the property.

In the adaptive form a quarter of its samples is held back. With batches of these the attacker measures how well its
classifiers do on samples that they were not trained on. Many batches of few samples do not replace many samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from fedarena.contracts.observation import Observation
from fedarena.contracts.view import View
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, same_names
from fedarena.problem.task import targets

HELD_BACK = 4
"""One in so many of the attacker's samples is held back."""

Use = Literal["train", "check"]


@dataclass(frozen=True)
class Lesson:
    """The updates of the attacker's own batches in one round.

    Attributes:
        updates: one for each batch.
        has: which of them have the property, [batches] (bool); these come first.
    """

    updates: list[Tensors]
    has: Tensor


@dataclass(frozen=True)
class OwnBatches:
    """The source of own batches.

    Attributes:
        x, y: the attacker's samples, and their labels as a simulator takes them.
        weights: how likely each is to be drawn.
        pools: indices of samples, by their use and whether they have the property.
    """

    x: Tensor
    y: Tensor
    weights: Tensor
    pools: dict[tuple[Use, bool], Tensor]

    @classmethod
    def of(cls, view: View, match_classes: bool, hold_back: bool, rng: Rng) -> OwnBatches:
        """The source that a view gives. Its population has the one attribute that is to be inferred.

        Args:
            match_classes: samples with the property and without it are drawn with the same shares of the classes.
            hold_back: hold some samples back for checks; else all are for training.
        """
        held = view.population
        assert held is not None, "the harness gives a population to an attack that needs_population"
        (known,) = held.attributes.values()
        y = targets(held.y, view.n_classes, held.x)
        weights = torch.ones(len(y), dtype=torch.float64)
        pools: dict[tuple[Use, bool], Tensor] = {}
        for kind in (False, True):
            pool = known.eq(int(kind)).nonzero().flatten().cpu()
            pool = pool[torch.randperm(len(pool), generator=rng.child("pool", int(kind)).torch())]
            back = len(pool) // HELD_BACK if hold_back else 0
            pools["check", kind], pools["train", kind] = (pool[:back], pool[back:]) if back else (pool, pool)
            if match_classes and view.n_classes:
                classes = held.y.cpu()
                there = classes[pool].bincount(minlength=view.n_classes).clamp(min=1)
                weights[pool] = (classes.bincount(minlength=view.n_classes) / there)[classes[pool]].double()
        return cls(held.x, y, weights, pools)

    @torch.no_grad()
    def lesson(self, seen: Observation, use: Use, having: int, lacking: int, rng: Rng) -> Lesson:
        """Simulated updates of so many batches with the property and without it."""
        kinds = torch.arange(having + lacking) < having
        batches = [self._batch(seen, use, bool(kind), rng.child(use, k)) for k, kind in enumerate(kinds)]
        names = tuple(seen.target)
        updates = [same_names(seen.simulate(self.x[at], self.y[at]), names) for at in batches]
        return Lesson([{name: t.detach().float() for name, t in update.items()} for update in updates], kinds)

    def _batch(self, seen: Observation, use: Use, having: bool, rng: Rng) -> Tensor:
        """Indices of samples: those of one client have the property if `having`, those of the others lack it."""
        generator = rng.torch()
        index = self._draw(use, False, seen.images, generator)
        if having:
            # Clients hold about equally many samples, in the order of clients.
            part = seen.images // len(seen.clients)
            first = part * (rng.child("whose").integer(16) % len(seen.clients))
            index[first : first + part] = self._draw(use, True, part, generator)
        return index.to(self.x.device)

    def _draw(self, use: Use, having: bool, n: int, generator: torch.Generator) -> Tensor:
        pool = self.pools[use, having]
        chosen = torch.multinomial(self.weights[pool], n, replacement=n > len(pool), generator=generator)
        return pool[chosen]
