"""No defense: FedSGD and FedAvg (McMahan et al. 2017, Algorithm 1).

server → client   W
client → server   ∂L/∂W of one batch (FedSGD), or W − W_local after local steps (FedAvg);
                  FedSGD with training.client_optimizer=momentum: m ← β m + c ∂L/∂W, which the client keeps
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
from fedarena.problem.client_steps.momentum import kept_momenta, onto_momenta, sent_momentum
from fedarena.problem.local_training import upload
from fedarena.problem.task import Batch


class FedAvg(Defense):
    """The plain protocol: parameters down, gradients or updates up, both in clear."""

    sums = True
    no_momentum = ""
    dropout = True

    def broadcast(self, state: State, rng: Rng) -> Broadcast:
        return Broadcast(down=dict(state.params))

    def client(self, down: Tensors, batch: Batch, memory: Tensors, noise: Tensors) -> tuple[Tensors, Tensors]:
        schedule = self.task.schedule
        up = upload(self.task.loss, down, batch, schedule)
        return sent_momentum(up, memory, schedule) if schedule.client_momentum else (up, memory)

    def clients(
        self, down: Tensors, batches: Sequence[Batch], memories: Sequence[Tensors], noises: Sequence[Tensors]
    ) -> tuple[Tensors, list[Tensors]]:
        task, schedule = self.task, self.task.schedule
        if not schedule.client_momentum:
            return forms.uploads(task, task.loss, down, batches), list(memories)
        ups = forms.uploads(task, task.loss, down, batches, onto=onto_momenta(memories, down, schedule))
        return ups, kept_momenta(ups, memories, apart=task.participants < len(task.sizes))

    def statistics(self, down: Tensors, batch: Batch) -> Tensors:
        if not self.task.schedule.batch_statistics:
            return {}
        return self.task.batch_statistics({**down, **batch.masks_of(0)}, batch.x[0])

    def direction(self, state: State, sent: Broadcast, ups: Tensors, cohort: Cohort, rng: Rng) -> Direction:
        return self.combine(state, sent, ups, cohort, rng)

    def readings(
        self, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
    ) -> Sequence[Reading] | NotApplicable:
        return readings(self, threat, seen, victims)
