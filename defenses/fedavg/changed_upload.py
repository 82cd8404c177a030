"""FedAvg whose clients change their upload before they send it: the form that most gradient defenses have.

server → client   W
client → server   T(g; z), g the plain upload and z the client's own randomness
server            W ← W − η Σ_c (N_c/N) T(g_c; z_c), or any aggregation rule or secure sum of them

A subclass writes T as `change`. A party that knows T has the adaptive form: it matches T(g(x'); 0) of a candidate x'
with what it saw. Where T leaves entries out, the party sees which ones, and matches the others (`KeptEntries`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from fedarena.contracts import plain_readings
from fedarena.contracts.aggregator import Aggregator
from fedarena.contracts.defense import Defense
from fedarena.contracts.kept_entries import KeptEntries
from fedarena.contracts.observation import Observation, Reading
from fedarena.contracts.simulators import ThroughProtocol
from fedarena.contracts.transcript import Seen
from fedarena.core.errors import UserError
from fedarena.core.tensors import Tensors, row, stack
from fedarena.core.threat import NotApplicable, Threat
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.problem.task import Batch, Task


class ChangedUpload(FedAvg):
    """FedAvg with T between the client's work and the wire; see the module's docstring."""

    no_momentum = "its clients change what they send, so that a momentum would hold changed gradients of earlier rounds"
    dropout = True

    one_batch: ClassVar[str] = ""
    """The protocol's name, if T is of the gradient of one batch; empty: T is of an update as well."""

    def __init__(self, options: Any, task: Task, rule: Aggregator | None = None) -> None:
        super().__init__(options, task, rule)
        if self.one_batch and not task.schedule.fedsgd:
            raise UserError(
                f"option 'local-epochs' is {task.schedule.local_epochs}, allowed with {self.one_batch}: 0 (a round is "
                "one batch)"
            )
        self.entries = sum(p.numel() for p in task.model.parameters())
        """d, the entries of an upload."""

    @abstractmethod
    def change(self, up: Tensors, down: Tensors, batch: Batch, noise: Tensors) -> Tensors:
        """T(g; z), differentiable where T is.

        Args:
            up: g, named and shaped like the parameters. down: the broadcast. batch: what the client worked on.
            noise: z, from `draw`; {}: as a party that does not know it plays the client.
        """

    def client(self, down: Tensors, batch: Batch, memory: Tensors, noise: Tensors) -> tuple[Tensors, Tensors]:
        up, memory = super().client(down, batch, memory, noise)
        return self.change(up, down, batch, noise), memory

    def clients(
        self, down: Tensors, batches: Sequence[Batch], memories: Sequence[Tensors], noises: Sequence[Tensors]
    ) -> tuple[Tensors, list[Tensors]]:
        ups, after = super().clients(down, batches, memories, noises)
        work = enumerate(zip(batches, noises, strict=True))
        return stack([self.change(row(ups, i), down, batch, noise) for i, (batch, noise) in work]), after


class EntriesLeftOut(ChangedUpload):
    """FedAvg whose T leaves entries of the upload out, and sends the others as they are."""

    @abstractmethod
    def kept(self, upload: Tensors) -> Tensors:
        """Which entries of an upload were sent, as whoever sees it can tell: 1 or 0, like the upload."""

    def readings(
        self, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
    ) -> Sequence[Reading] | NotApplicable:
        """Those of FedAvg. In the adaptive form the entries that were left out say nothing, and are not matched.

        In a mean of several uploads they are the entries that nobody sent.
        """
        of_fedavg = plain_readings.readings(self, threat, seen, victims)
        if threat.form == "paper" or isinstance(of_fedavg, NotApplicable):
            return of_fedavg
        return [
            replace(r, name="kept entries", observations=tuple(self._kept_alone(o, seen) for o in r.observations))
            for r in of_fedavg
        ]

    def _kept_alone(self, o: Observation, seen: Mapping[int, Seen]) -> Observation:
        plain: Defense = FedAvg(None, self.task).in_round(o.round)
        whole = ThroughProtocol(plain, seen[o.round].down, o.clients)
        return replace(o, simulate=KeptEntries(whole, self.kept(o.target)))
