"""No defense: FedSGD and FedAvg (McMahan et al. 2017, Algorithm 1).

server → client   W
client → server   ∂L/∂W of one batch (FedSGD), or W − W_local after local steps (FedAvg)
server            W ← W − η Σ_c (N_c/N) up_c
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fedarena.contracts.defense import Broadcast, Cohort, Defense, Direction, State
from fedarena.contracts.observation import Observation, Reading
from fedarena.contracts.simulators import (
    PlainGradient,
    ThroughProtocol,
    images_behind,
    others_of,
    uploads_seen,
    why_no_difference,
    without_own,
)
from fedarena.contracts.transcript import Seen
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, combine, scale
from fedarena.core.threat import NotApplicable, Threat
from fedarena.problem import client_steps as forms
from fedarena.problem.batch import Batch
from fedarena.problem.local_training import upload


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
        found = [self._upload(threat, seen, t) for t in victims if t in seen]
        observations = tuple(o for o in found if isinstance(o, Observation))
        if not observations:
            reasons = [o for o in found if isinstance(o, NotApplicable)]
            return reasons[0] if reasons else NotApplicable(self._why_nothing(threat))
        return [Reading("upload" if threat.party != "client" else "difference", observations)]

    def _upload(self, threat: Threat, seen: Mapping[int, Seen], t: int) -> Observation | NotApplicable:
        """The upload of round t: read off the wire, or by a client from two consecutive broadcasts."""
        now, schedule = seen[t], self.task.schedule
        read = self._difference(threat, seen, t) if threat.party == "client" else uploads_seen(now, threat)
        if isinstance(read, NotApplicable):
            return read
        clients, target = read
        if not schedule.fedsgd:  # the paper form's plain gradient: the update per local step and unit of learning rate
            steps = sum(schedule.steps(self.task.sizes[c]) for c in clients) / len(clients)
            gradient = scale(1 / (schedule.lr * steps), target)
        else:
            gradient = target
        adaptive = threat.form == "adaptive"
        through, plain = ThroughProtocol(self, now.down, clients), PlainGradient(self.task, now.down, clients)
        return Observation(
            round=t,
            clients=clients,
            images=sum(images_behind(self.task, c) for c in clients),
            target=target if adaptive else gradient,
            simulate=through if adaptive else plain,
            output_bias=self.task.output_bias,
            estimate=gradient,
            estimate_of="gradient",
        )

    def _difference(
        self, threat: Threat, seen: Mapping[int, Seen], t: int
    ) -> tuple[tuple[int, ...], Tensors] | NotApplicable:
        """The others' mean upload of round t, from W_t and W_{t+1}."""
        now, after, others = seen[t], seen.get(t + 1), others_of(seen[t], threat)
        if self.task.schedule.server_optimizer != "sgd":
            return NotApplicable(
                "the server's Adam steps do not show the clients' mean upload, and this attack does not invert Adam"
            )
        if why := self.why_not_mean():
            return NotApplicable(why)
        if after is None or not others:
            return NotApplicable(self._why_nothing(threat))
        assert now.own_up is not None
        total = scale(1 / self.step_size, combine(1.0, now.down, -1.0, after.down))
        return others, without_own(total, now.own_up, self.mean_weights, now, threat)

    def _why_nothing(self, threat: Threat) -> str:
        if threat.party != "client":
            return "none of the rounds attacked took place"
        return why_no_difference(self.task)
