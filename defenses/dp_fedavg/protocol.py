"""Client-level differential privacy by a trusted server (McMahan et al. 2018, Algorithm 1, flat clipping).

server → client   W
client → server   π(u) = u·min(1, S/‖u‖),   u the plain upload, all entries together
server            W ← W − η((1/n) Σ_c π(u_c) + N(0, (zS/n)² I)),   n the clients whose uploads arrived

Who sees the models alone, a client or an outsider, is promised (ε, δ) for all data of a client. The server, and who
listens on the wire, read each π(u). A secure sum hides single uploads from both; it weighs clients by their samples, so
that it keeps the promise where all have as many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import torch
from torch import Tensor

from fedarena.contracts import plain_readings
from fedarena.contracts.aggregator import Aggregator
from fedarena.contracts.defense import Broadcast, Cohort, Direction, State
from fedarena.contracts.observation import Observation, Reading
from fedarena.contracts.secure_sum import SecureSum
from fedarena.contracts.transcript import Seen
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, flatten, row, rows, shaped
from fedarena.core.threat import NotApplicable, Threat
from fedarena.defenses.dp_fedavg import accounting
from fedarena.defenses.dp_fedavg.card import Options
from fedarena.defenses.fedavg.changed_upload import ChangedUpload
from fedarena.problem.task import Batch, Task

LARGE_DELTA = (
    "δ = {delta:.2g} is 1/{clients} or more, where {clients} are the clients: a protocol that publishes all data of "
    "one client keeps this promise too"
)
"""The warning about a δ that protects nobody."""
WITHOUT_PROMISE = 0.1
NO_PROMISE = "δ = {delta:.2g}: with this probability nothing is promised; more clients make it smaller"
"""The δ above which this is said."""


class DPFedAvg(ChangedUpload):
    """The protocol; see the module's docstring and `fedarena.defenses.dp_fedavg.card.Options`."""

    options: Options
    sums = True
    name: ClassVar[str] = "dp-fedavg"
    """The protocol's own, for messages."""
    epsilon = staticmethod(accounting.epsilon)
    """ε of one client whose data are all exchanged."""

    def __init__(self, options: Options, task: Task, rule: Aggregator | None = None) -> None:
        if rule is not None:
            raise UserError(
                f"defense {self.name} takes no aggregation rule: how far one client moves the mean is known, and how "
                "far it moves a rule's vector is not"
            )
        super().__init__(options, task)
        if options.noise is not None and options.epsilon is not None:
            raise UserError(
                f"defense {self.name}: option 'noise' is {options.noise:g} and option 'epsilon' is {options.epsilon:g}"
                ", allowed: one of them (epsilon=none leaves the noise as given)"
            )
        self.delta = options.delta if options.delta is not None else max(2, len(task.sizes)) ** -1.1
        self.multiplier = options.noise or 0.0
        """z."""
        if options.epsilon is not None:
            self.multiplier = accounting.multiplier(options.epsilon, *self._accounted, self.epsilon)

    @property
    def _accounted(self) -> tuple[float, int, int, int]:
        return self.delta, self.task.participants, len(self.task.sizes), self.task.schedule.rounds

    def _check_sums(self, secure: SecureSum) -> None:
        super()._check_sums(secure)
        if len(set(self.task.sizes)) > 1:
            raise UserError(
                f"option 'defense' has a secure sum over clients with {min(self.task.sizes)} to "
                f"{max(self.task.sizes)} samples, allowed with {self.name}: clients with as many each, such as by "
                "--partition few, because the sum weighs them by their samples"
            )

    @property
    def mean_weights(self) -> tuple[int, ...]:
        """1 for each client."""
        return (1,) * len(self.task.sizes)

    def change(self, up: Tensors, down: Tensors, batch: Batch, noise: Tensors) -> Tensors:
        return shaped(self.bounded(flatten(up)[None])[0], up)

    def bounded(self, ups: Tensor) -> Tensor:
        """π of each row of [n, d]."""
        lengths: Tensor = torch.linalg.vector_norm(ups, dim=1, keepdim=True)
        return ups * (self.options.clip / lengths.clamp_min(self.options.clip))

    def direction(self, state: State, sent: Broadcast, ups: Tensors, cohort: Cohort, rng: Rng) -> Direction:
        x, n = rows(ups), len(cohort.clients)
        if self.secure is None:
            x = self.bounded(x)
        mean = x.mean(0)
        extra: Tensors = {}
        if self.multiplier:
            noise, extra = self.server_noise(state, self._noise_on_mean(n), rng)
            mean = mean + noise.to(mean)
        used = torch.full((len(x),), 1 / len(x)).to(cohort.weights)
        return Direction(shaped(mean, row(ups, 0)), extra, {"used": used})

    def server_noise(self, state: State, std: float, rng: Rng) -> tuple[Tensor, Tensors]:
        """What the server adds to the mean [d], and what it keeps of it.

        Args:
            std: zS/n.
        """
        return std * torch.randn(self.entries, generator=rng.torch()), {}

    def _noise_on_mean(self, n: int) -> float:
        """zS/n, the standard deviation of the server's noise on the mean of n uploads."""
        return self.multiplier * self.options.clip / n

    def readings(
        self, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
    ) -> Sequence[Reading] | NotApplicable:
        """Those of FedAvg. A client sees the others' mean with the server's noise, whose size is public."""
        found = plain_readings.readings(self, threat, seen, victims)
        if threat.party != "client" or isinstance(found, NotApplicable):
            return found
        return [
            replace(r, observations=tuple(replace(o, noise_std=self.noise_seen(o)) for o in r.observations))
            for r in found
        ]

    def noise_seen(self, o: Observation) -> float:
        """The standard deviation of the server's noise in the others' mean upload, as two models show it."""
        return self._noise_on_mean(len(o.clients))

    def guarantees(self) -> dict[str, float]:
        """z, δ, T, the share of clients in a round, and the ε of one client whose data are all exchanged."""
        if not self.multiplier:
            return {"noise_multiplier": 0.0}
        delta, drawn, clients, rounds = self._accounted
        name = "epsilon_client" if drawn == clients else "epsilon_client_drawn"
        promised = {
            "noise_multiplier": self.multiplier,
            "delta": delta,
            "cohort": drawn / clients,
            "rounds": float(rounds),
            name: self.epsilon(self.multiplier, *self._accounted),
        }
        return promised if self.options.epsilon is None else {**promised, "target": self.options.epsilon}

    def warnings(self, verdicts: Sequence[Tensors]) -> tuple[str, ...]:
        """As inherited, and that δ is too large to protect a client."""
        inherited, clients = super().warnings(verdicts), len(self.task.sizes)
        if not self.multiplier:
            return inherited
        told = [LARGE_DELTA] * (self.delta * clients >= 1) + [NO_PROMISE] * (self.delta > WITHOUT_PROMISE)
        return (*inherited, *(text.format(delta=self.delta, clients=clients) for text in told[:1]))
