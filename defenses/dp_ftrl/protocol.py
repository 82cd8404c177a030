"""Client-level DP by tree aggregation (Kairouz et al. 2021, Algorithm 1 without momentum), with a trusted server.

server → client   W
client → server   π(u) = u·min(1, S/‖u‖),   u the plain upload, all entries together
server            W_t = W_0 − η(Σ_{s<t} (1/n) Σ_c π(u_{s,c}) + N_t)

N_t is the noise of a prefix sum, from a tree whose nodes have N(0, (zS/n)²I) each (`fedarena.defenses.dp_ftrl.tree`).
The server keeps the noise of the subtrees that make up the prefix, and steps against the mean upload plus
N_{t+1} − N_t: the noises of former rounds cancel. Each party sees what it sees of `dp-fedavg`; two consecutive models
show the others' mean upload with the noise of that difference.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from fedarena.contracts.aggregator import Aggregator
from fedarena.contracts.defense import State
from fedarena.contracts.observation import Observation
from fedarena.contracts.secure_sum import SecureSum
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.defenses.dp_fedavg.protocol import DPFedAvg
from fedarena.defenses.dp_ftrl import accounting
from fedarena.defenses.dp_ftrl.card import Options
from fedarena.defenses.dp_ftrl.tree import closed, grown, step_variance
from fedarena.problem.task import Task

NODES = "dp-ftrl.nodes"
"""The state's name for the noise of the subtrees in the prefix [levels, d], row h that of 2^h leaves."""


class DPFTRL(DPFedAvg):
    """The protocol; see the module's docstring and `fedarena.defenses.dp_ftrl.card.Options`."""

    options: Options
    name = "dp-ftrl"
    epsilon = staticmethod(accounting.epsilon)

    def __init__(self, options: Options, task: Task, rule: Aggregator | None = None) -> None:
        if task.schedule.server_optimizer != "sgd":
            raise UserError(
                f"option 'training.server_optimizer' is {task.schedule.server_optimizer}, allowed with defense "
                f"{self.name}: sgd, since noises of former rounds cancel in a sum alone"
            )
        super().__init__(options, task, rule)

    def _check_sums(self, secure: SecureSum) -> None:
        super()._check_sums(secure)
        if getattr(secure.options, "dropout", 0):
            raise UserError(
                f"option 'dropout' is {secure.options.dropout:g}, allowed with {self.name}: 0, since a node's noise is "
                "for means of as many uploads in all its rounds"
            )

    def server_noise(self, state: State, std: float, rng: Rng) -> tuple[Tensor, Tensors]:
        """N_{t+1} − N_t, and the tree's nodes that make up N_{t+1}."""
        leaf = state.steps
        own = std * torch.randn((closed(leaf) + 1, self.entries), generator=rng.torch())
        empty = torch.zeros(self.task.schedule.rounds.bit_length(), self.entries)
        before = state.extra.get(NODES, empty)
        after = grown(before, leaf, own.to(before))
        return after.sum(0) - before.sum(0), {NODES: after}

    def noise_seen(self, o: Observation) -> float:
        """As inherited, for N_{t+1} − N_t."""
        return super().noise_seen(o) * math.sqrt(step_variance(o.round))
