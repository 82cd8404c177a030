"""The local step of protocols without a server: FedAvg's client at each node's own model, for all nodes at once."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence

from fedarena.contracts.observation import Reading
from fedarena.contracts.peer_readings import readings
from fedarena.contracts.peers import Peers
from fedarena.contracts.trace import Trace
from fedarena.contracts.transcript import Seen
from fedarena.core.tensors import Tensors, row
from fedarena.core.threat import NotApplicable, Threat
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.problem.client_steps import uploads_apart
from fedarena.problem.client_steps.momentum import kept_momenta, onto_momenta
from fedarena.problem.task import Batch


class PeerSGD(Peers, FedAvg):
    """A protocol without a server whose `client` is FedAvg's."""

    def readings(
        self, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
    ) -> Sequence[Reading] | NotApplicable:
        return readings(self, threat, seen, victims, self.traces)

    @abstractmethod
    def traces(
        self, threat: Threat, seen: Mapping[int, Seen], rounds: Sequence[int]
    ) -> Sequence[Trace] | NotApplicable:
        """What a party makes of its victim's messages in the given rounds, each seen with the one before it."""

    def local(
        self, models: Tensors, batches: Sequence[Batch], memories: Sequence[Tensors], noises: Sequence[Tensors]
    ) -> tuple[Tensors, list[Tensors]]:
        schedule = self.task.schedule
        if not schedule.client_momentum:
            return uploads_apart(self.task, models, batches), list(memories)
        ups = uploads_apart(self.task, models, batches, onto_momenta(memories, row(models, 0), schedule))
        return ups, kept_momenta(ups, memories, apart=False)

    def local_halves(
        self, models: Tensors, batches: Sequence[Batch], memories: Sequence[Tensors], noises: Sequence[Tensors]
    ) -> tuple[Tensors, list[Tensors]]:
        if self.task.schedule.client_momentum:  # a momentum is kept, and so must not be overwritten
            ups, after = self.local(models, batches, memories, noises)
            return self.half(models, ups), after

        def step(starts: Tensors, ups: Tensors) -> None:
            self.half(starts, ups, out=ups)

        return uploads_apart(self.task, models, batches, then=step), list(memories)
