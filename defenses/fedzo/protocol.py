"""FedZO, federated zeroth-order optimisation (Fang et al. 2022, Algorithm 1).

    server → client   W
    client            H local steps W ← W − η g with g = (d/μ)(1/b2) Σ_k v_k (L(W + μ v_k; B) − L(W; B)) of a batch B
                      of b1 samples and b2 directions v_k, uniform on the unit sphere and drawn anew in each step
    client → server   W − W_local, 4d bytes
    server            W ← W − Σ_c (N_c/N) up_c

A client runs b2 + 1 forward passes a step, and no backward pass. Directions are the client's own and stay with it:
this is what differs from BAFFLE, whose parties share them and can send the loss differences in place of d numbers.
With local-epochs 0 there is one step, H = 1, and a client sends its g.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Self

import torch
from torch import Tensor

from fedarena.contracts.aggregator import Aggregator
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, combine, shaped, stack
from fedarena.defenses.baffle import forward_passes as forwards
from fedarena.defenses.baffle.card import Options as BaffleOptions
from fedarena.defenses.baffle.check_options import FORMATS
from fedarena.defenses.baffle.wire import SEED, BaffleWire
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.defenses.fedzo.card import Options
from fedarena.defenses.fedzo.sphere import sphere_directions, sphere_estimate
from fedarena.problem.task import Batch, Task

Differences = Callable[[Tensors, Tensor, Tensor, int], Tensor]
"""(params, x [b, ...], y, seed) → ΔL_1 … ΔL_b2."""


class FedZO(FedAvg):
    """The protocol; see the module's docstring and `fedarena.defenses.fedzo.card.Options`.

    The client step without its randomness is FedAvg's: for small μ, g is the gradient in the mean over directions, and
    whoever does not know them can expect no more.
    """

    options: Options
    undisclosed = "estimate gradients along random directions of their own"
    no_momentum = "its clients keep nothing between rounds (Algorithm 1)"
    dropout = False

    def __init__(self, options: Options, task: Task, rule: Aggregator | None = None) -> None:
        super().__init__(options, task, rule)
        self.steps = BaffleWire.of(BaffleOptions(directions=options.directions, sigma=options.mu), task)
        """The local steps on estimates, and each step's seed, which are those of BAFFLE at the epoch level."""

    def in_round(self, t: int) -> Self:
        protocol = super().in_round(t)
        if protocol is not self:
            protocol.steps = replace(self.steps, schedule=protocol.task.schedule)
        return protocol

    def draw(self, rng: Rng) -> Tensors:
        """The seed of the directions of a client's round. It does not leave the client."""
        return {SEED: torch.tensor([rng.child("directions").integer(31)], dtype=torch.int32)}

    def client(self, down: Tensors, batch: Batch, memory: Tensors, noise: Tensors) -> tuple[Tensors, Tensors]:
        if SEED not in noise:
            return super().client(down, batch, memory, noise)
        return self._upload(down, batch, int(noise[SEED]), self.differences), memory

    def clients(
        self, down: Tensors, batches: Sequence[Batch], memories: Sequence[Tensors], noises: Sequence[Tensors]
    ) -> tuple[Tensors, list[Tensors]]:
        given = zip(batches, noises, strict=True)
        return stack([self._upload(down, b, int(n[SEED]), self._fast) for b, n in given]), list(memories)

    def _upload(self, down: Tensors, batch: Batch, seed: int, evaluate: Differences) -> Tensors:
        """g of one batch (FedSGD), or W − W_local of the local steps on such estimates."""

        def estimate(params: Tensors, x: Tensor, y: Tensor, t: int) -> Tensors:
            at = self.steps.seed_of_step(seed, t)
            g = sphere_estimate(at, self.steps.n, evaluate(params, x, y, at), self.options.mu)
            return {name: value.to(params[name]) for name, value in shaped(g, self.steps.like).items()}

        if self.task.schedule.fedsgd:
            return estimate({name: down[name] for name in self.steps.like}, batch.x[0], batch.y[0], 0)
        return self.steps.local(down, batch, {}, estimate)[0]

    def differences(self, params: Tensors, x: Tensor, y: Tensor, seed: int) -> Tensor:
        """ΔL_1 … ΔL_b2 of one batch [b2], written plainly."""
        dtype = FORMATS[self.options.precision]
        w, x = {name: p.to(dtype) for name, p in params.items()}, x.to(dtype)
        y = y.to(dtype) if y.is_floating_point() else y
        here, found = self.task.loss(w, x, y), []
        for _, v in zip(range(self.options.directions), sphere_directions(seed, self.steps.n), strict=False):
            there = combine(1.0, w, 1.0, shaped((self.options.mu * v).to(x), self.steps.like))
            found.append(self.task.loss(there, x, y) - here)
        return torch.stack(found)

    def _fast(self, params: Tensors, x: Tensor, y: Tensor, seed: int) -> Tensor:
        o, v = self.options, sphere_directions(seed, self.steps.n)
        how = forwards.Differencing(o.mu, "forward", FORMATS[o.precision])
        return forwards.differences(self.task, params, [Batch(x[None], y[None])], v, o.directions, how)[0]
