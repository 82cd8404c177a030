"""No defense: FedSGD and FedAvg (McMahan et al. 2017, Algorithm 1).

server → client   W
client → server   ∂L/∂W of one batch (FedSGD), or W − W_local after local steps (FedAvg)
server            W ← W − η Σ_c (N_c/N) up_c
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fedarena.contracts.defense import Broadcast, Cohort, Defense, Direction, State
from fedarena.contracts.observation import Reading
from fedarena.contracts.plain_readings import readings
from fedarena.contracts.transcript import Seen
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.core.threat import NotApplicable, Threat
from fedarena.problem import client_steps as forms
from fedarena.problem.local_training import upload
from fedarena.problem.task import Batch


class FedAvg(Defense):
    """The plain protocol: parameters down, gradients or updates up, both in clear."""

    sums = True

    def broadcast(self, state: State, rng: Rng) -> Broadcast:
        return Broadcast(down=dict(state.params))

    def client(self, down: Tensors, batch: Batch, memory: Tensors, noise: Tensors) -> tuple[Tensors, Tensors]:
        return upload(self.task.loss, down, batch, self.task.schedule), memory

    def clients(
        self, down: Tensors, batches: Sequence[Batch], memories: Sequence[Tensors], noises: Sequence[Tensors]
    ) -> tuple[Tensors, list[Tensors]]:
        return forms.uploads(self.task, self.task.loss, down, batches), list(memories)

    def direction(self, state: State, sent: Broadcast, ups: Tensors, cohort: Cohort, rng: Rng) -> Direction:
        return self.combine(state, sent, ups, cohort, rng)

    def readings(
        self, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
    ) -> Sequence[Reading] | NotApplicable:
        return readings(self, threat, seen, victims)
