"""DP-RSA (Zhu & Ling 2022): robust stochastic model aggregation whose messages are flipped signs.

All models minimise Σ_c f_c(W_c) + (u/2)‖W‖² + λ Σ_c ‖W − W_c‖₁ together, by subgradients (RSA, Li et al. 2019):

    server → client   W
    client            W_c ← W_c − η ∇f_c(W_c; B);  s_c = sign(W − W_c), each entry flipped with probability
                      1/(1 + e^ε);  W_c ← W_c + ηλ s_c
    client → server   s_c, one bit an entry
    server            W ← W − η (u W + λ Σ_c s_c)

Each client keeps W_c between rounds. A corrupted client has one vote of ±1 in each entry, whatever it sends: the server
takes the sign of every number. Flipping is randomised response, (ε, 0)-differentially private for each sign.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from fedarena.contracts.aggregator import Aggregator
from fedarena.contracts.defense import Broadcast, Cohort, Direction, State
from fedarena.core.errors import UserError
from fedarena.core.gradients import gradient
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, combine, shaped, weighted_mean
from fedarena.defenses.dp_rsa.card import Options
from fedarena.defenses.dp_rsa.signs import kept, random_flips, sign_bytes, signs
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.problem.task import Batch, Task

LOCAL = "local."
"""Prefix of W_c in a client's memory."""

FLIPS = "flips"
"""±1 for each entry of a message, what it is multiplied by."""


class DPRSA(FedAvg):
    """The protocol; see the module's docstring and `fedarena.defenses.dp_rsa.card.Options`."""

    options: Options
    undisclosed = "keep a model of their own, and send signs of how it differs from the server's"
    no_momentum = "its clients send signs, and keep a model of their own between rounds"
    dropout = False
    sums = False

    def __init__(self, options: Options, task: Task, rule: Aggregator | None = None) -> None:
        if rule is not None:
            raise UserError("defense dp-rsa takes no aggregation rule: it counts the votes of signs")
        super().__init__(options, task)
        schedule = task.schedule
        needs = {
            "local-epochs": (schedule.local_epochs, 0, "a message a step"),
            "weight_decay": (schedule.weight_decay, 0.0, "the defense's own option is decay"),
            "server_optimizer": (schedule.server_optimizer, "sgd", "the server takes a subgradient step"),
        }
        for name, (value, needed, why) in needs.items():
            if value != needed:
                raise UserError(f"option '{name}' is {value}, allowed with dp-rsa: {needed} ({why})")
        self.entries = sum(p.numel() for p in task.model.parameters())
        """d."""

    @property
    def mean_weights(self) -> tuple[int, ...]:
        """Each client has one vote, whatever number of samples it holds."""
        return (1,) * len(self.task.sizes)

    @property
    def step_size(self) -> float:
        """ηλn, the step along the mean of n messages."""
        return self.task.schedule.step_size * self.options.penalty * self.task.participants

    @property
    def _shrinkage(self) -> float:
        """ηu, by which share W shrinks in a round."""
        return self.task.schedule.step_size * self.options.decay

    def guarantees(self) -> dict[str, float]:
        """ε of a sign, its probability to be kept, and d·T·ε for all signs of T rounds."""
        epsilon, rounds = self.options.epsilon, self.task.schedule.rounds
        if epsilon is None:
            return {}
        return {
            "epsilon_per_sign": epsilon,
            "kept": kept(epsilon),
            "rounds": float(rounds),
            "epsilon_all": epsilon * self.entries * rounds,
        }

    # -- clients -----------------------------------------------------------------------------------

    def draw(self, rng: Rng) -> Tensors:
        """Which signs are flipped, one vector [d] in the order of the parameters."""
        if self.options.epsilon is None:
            return {}
        return {FLIPS: random_flips(self.entries, kept(self.options.epsilon), rng.torch())}

    def client(self, down: Tensors, batch: Batch, memory: Tensors, noise: Tensors) -> tuple[Tensors, Tensors]:
        own = {name: memory.get(LOCAL + name, w) for name, w in down.items()}
        lr = self.task.schedule.lr
        own = combine(1.0, own, -lr, gradient(self.task.loss, own, batch.x[0], batch.y[0]))
        message = signs(combine(1.0, down, -1.0, own))
        if FLIPS in noise:
            flips = shaped(noise[FLIPS], down)
            message = {name: s * flips[name] for name, s in message.items()}
        own = combine(1.0, own, lr * self.options.penalty, message)
        return message, {LOCAL + name: w for name, w in own.items()}

    def sent_bytes(self, ups: Tensors) -> int:
        return sign_bytes(len(next(iter(ups.values()))), self.entries)

    # -- the server --------------------------------------------------------------------------------

    def direction(self, state: State, sent: Broadcast, ups: Tensors, cohort: Cohort, rng: Rng) -> Direction:
        """The mean of the messages' signs; (λ n) times it is the subgradient of the penalty."""
        votes = torch.ones_like(cohort.weights)
        return Direction(weighted_mean(signs(ups), votes), verdict={"used": votes})

    def step(self, state: State, direction: Tensors) -> tuple[Tensors, Mapping[str, tuple[Tensor, ...]]]:
        """W − η (u W + λ Σ_c s_c)."""
        params, memory = super().step(state, direction)
        return combine(1.0, params, -self._shrinkage, state.params), memory

    def direction_between(self, before: Tensors, after: Tensors) -> Tensors:
        """The mean message behind a step of the server."""
        unshrunk = combine(1.0, {name: after[name] for name in before}, self._shrinkage, before)
        return super().direction_between(before, unshrunk)
