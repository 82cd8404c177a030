"""Majority vote on the signs of private gradients.

server → client   W
client → server   s = sign(g), one bit an entry, g as in `fedarena.defenses.dp_sgd.protocol`: bounded gradients + noise
server            W ← W − ηγ sign(Σ_c s_c)

g keeps the promise of DP-SGD, and so does what is computed from it: s promises the same (ε, δ). The server steps by
±ηγ in each entry, and not at all where the votes tie. A corrupted client has one vote of ±1 in each entry, whatever it
sends: the server takes the sign of every number. As with all votes, it is lost to a majority of corrupted clients.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from fedarena.contracts import plain_readings
from fedarena.contracts.aggregator import Aggregator
from fedarena.contracts.defense import Broadcast, Cohort, Direction, State
from fedarena.contracts.observation import Reading
from fedarena.contracts.transcript import Seen
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.core.threat import NotApplicable, Threat
from fedarena.defenses.dp_rsa.signs import sign_bytes, signs
from fedarena.defenses.dp_sgd.protocol import DPSGD
from fedarena.defenses.sign_dp.card import Options
from fedarena.problem.task import Batch, Task


class SignDP(DPSGD):
    """The protocol; see the module's docstring and `fedarena.defenses.sign_dp.card.Options`."""

    options: Options
    no_momentum = DPSGD.no_momentum
    name = "sign-dp"
    sums = False

    def __init__(self, options: Options, task: Task, rule: Aggregator | None = None) -> None:
        if rule is not None:
            raise UserError("defense sign-dp takes no aggregation rule: it counts the votes of signs")
        super().__init__(options, task)

    @property
    def step_size(self) -> float:
        """ηγ; with `base_epsilon` as DP-SGD's times γ."""
        return super().step_size * self.options.scale

    @property
    def noise_std(self) -> float:
        """0: an upload has two values, and its noise does not add to them."""
        return 0.0

    def client(self, down: Tensors, batch: Batch, memory: Tensors, noise: Tensors) -> tuple[Tensors, Tensors]:
        up, memory = super().client(down, batch, memory, noise)
        return signs(up), memory

    def clients(
        self, down: Tensors, batches: Sequence[Batch], memories: Sequence[Tensors], noises: Sequence[Tensors]
    ) -> tuple[Tensors, list[Tensors]]:
        ups, after = super().clients(down, batches, memories, noises)
        return signs(ups), after

    def expected_upload(self, down: Tensors, x: Tensor, y: Tensor) -> Tensors:
        return signs(super().expected_upload(down, x, y))

    def sent_bytes(self, ups: Tensors) -> int:
        return sign_bytes(len(next(iter(ups.values()))), self.entries)

    def direction(self, state: State, sent: Broadcast, ups: Tensors, cohort: Cohort, rng: Rng) -> Direction:
        """The majority's sign of each entry, 0 where the votes tie."""
        majority = {name: torch.sign(votes.sum(0)) for name, votes in signs(ups).items()}
        return Direction(majority, verdict={"used": torch.ones_like(cohort.weights)})

    def readings(
        self, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
    ) -> Sequence[Reading] | NotApplicable:
        """An upload off the wire, as of a plain protocol; a client sees the majority's signs alone."""
        if threat.party == "client":
            return NotApplicable(
                "consecutive broadcasts show the signs of the majority, and this attack reads the mean of all uploads: "
                "that is its limit, and no strength of the protocol"
            )
        return plain_readings.readings(self, threat, seen, victims)
