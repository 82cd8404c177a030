"""BAFFLE's messages, and what both ends compute from them: directions from a seed, and estimates along them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Self

import torch
from torch import Tensor

from fedarena.contracts.defense import State
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, combine, shaped
from fedarena.defenses.baffle import client_state
from fedarena.defenses.baffle.card import Options
from fedarena.defenses.baffle.directions import CHUNK_BYTES, directions, stein
from fedarena.problem.local_training import local_step
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Batch, Task

SEED = "seed"
"""4 bytes that both ends expand."""

COUNT = "count"
"""How many differences a client sends, if the client chooses that."""

DIFFERENCES = "differences"
"""ΔL_1 … ΔL_K."""

Estimate = Callable[[Tensors, Tensor, Tensor, int], Tensors]
"""(params, x [b, ...], y, number of the step) → ĝ."""

ServerStep = Callable[[State, Tensors], tuple[Tensors, Mapping[str, tuple[Tensor, ...]]]]
"""`fedarena.contracts.defense.Defense.step`."""


@dataclass(frozen=True)
class BaffleWire:
    """The public facts by which broadcasts and uploads are read.

    Attributes:
        options: the protocol's.
        schedule: the training's.
        like: names and shapes of the parameters, in their order.
        n: how many numbers they have.
    """

    options: Options
    schedule: Schedule
    like: Tensors
    n: int

    @classmethod
    def of(cls, options: Options, task: Task) -> Self:
        """The wire of a model."""
        like: Tensors = dict(task.model.named_parameters())
        return cls(options=options, schedule=task.schedule, like=like, n=sum(p.numel() for p in like.values()))

    @property
    def own_seeds(self) -> bool:
        """Whether every client perturbs with a seed of its own."""
        return self.options.perturbations == "client"

    @property
    def points(self) -> float:
        """The distance of the two points of a difference in σ: 1, for central differences 2."""
        return 2.0 if self.options.scheme == "central" else 1.0

    @property
    def spacing(self) -> float:
        """How far the two points of a difference are apart, in units of a direction z_k: σ or 2σ."""
        return self.points * self.options.sigma

    def directions(self, seed: int, k: int | None = None) -> Iterator[Tensor]:
        """z_1 … z_k [n] from their seed; all K of the options by default."""
        return islice(directions(seed, self.n), self.options.directions if k is None else k)

    @staticmethod
    def seed_of_step(seed: int, t: int) -> int:
        """The seed of local step t's perturbations, from the round's; step 0 takes the round's own."""
        return Rng(seed).child("step", t).integer(31) if t else seed

    def estimate(self, seed: int, differences: Tensor, chunk: int = CHUNK_BYTES) -> Tensors:
        """ĝ from K differences [K] and the seed of their perturbations (Eq. 6), shortened if `clip` is set.

        Args:
            seed: of the perturbations.
            differences: ΔL_1 … ΔL_K.
            chunk: bytes of perturbations held at once; at least one is.
        """
        g = stein(seed, self.n, differences / self.points, self.options.sigma, chunk)
        return self.clipped(shaped(g.to(differences.device), self.like))

    def clipped(self, g: Tensors) -> Tensors:
        """ĝ, shortened so that the largest absolute entry is `clip`, if that is set."""
        if self.options.clip is None:
            return g
        largest = torch.stack([t.abs().max() for t in g.values()]).max()
        factor = (self.options.clip / largest).clamp(max=1.0)
        return {name: t * factor for name, t in g.items()}

    def open(self, step: ServerStep, down: Tensors, memory: Tensors) -> tuple[Tensors, Tensors]:
        """W_t, from the broadcast alone or rebuilt from the last one, and the memory that rebuilding needs.

        Args:
            step: one step of the server's optimiser.
            down: the broadcast.
            memory: the client's memory of the last round.
        """
        if self.options.downlink == "model":
            return {name: down[name] for name in self.like}, {}
        if DIFFERENCES in down:
            before = client_state.unpacked(memory, self.like)
            g = self.estimate(int(memory[SEED]), down[DIFFERENCES])
            params, optimizer = step(before, g)
            state = State(params, optimizer=optimizer, steps=before.steps + 1)
        else:
            last = client_state.unpacked(memory, self.like) if memory else State({})
            state = replace(last, params={name: down[name] for name in self.like})
        return state.params, {**client_state.packed(state), SEED: down[SEED]}

    def local(self, start: Tensors, batch: Batch, memory: Tensors, estimate: Estimate) -> tuple[Tensors, Tensors]:
        """Local epochs on ĝ: W − W_local, and the optimiser's memory if it is kept between rounds."""
        start = {name: start[name] for name in self.like}
        params = start
        moments = {name: client_state.moments(memory, name) for name in self.like}
        before = client_state.steps(memory)
        for t in range(batch.x.shape[0]):
            g, moved = estimate(params, batch.x[t], batch.y[t], t), {}
            for name, p in params.items():
                decayed = (
                    g[name].to(p) + self.schedule.weight_decay * p if self.schedule.weight_decay else g[name].to(p)
                )
                step, moments[name] = local_step(decayed, moments[name], before + t + 1, self.schedule)
                moved[name] = p - step
            params = moved
        steps = before + batch.x.shape[0]
        after = client_state.optimizer_memory(moments, steps) if self.options.optimizer_state == "kept" else {}
        return combine(1.0, start, -1.0, params), after
