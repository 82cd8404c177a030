"""Statistics of batch normalisation that clients send beside their uploads (`Schedule.batch_statistics`).

Clients of FedAvg upload running statistics with their model, of which a server that knows those before takes the
batch's own: μ and σ² of what enters each layer of batch normalisation. Whoever reads a message in clear reads these
too. In the adaptive form the party is given them, with a function that says what a candidate batch has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from fedarena.contracts.defense import Defense
from fedarena.contracts.observation import Observation, Reading, Statistics
from fedarena.contracts.transcript import Seen
from fedarena.core.tensors import Tensors, row
from fedarena.problem.task import Batch


@dataclass(frozen=True)
class SentStatistics:
    """What a client with a candidate batch would send beside its upload; without masks of dropout, which it draws.

    Attributes:
        defense: the protocol. down: the broadcast that the party saw.
    """

    defense: Defense
    down: Tensors

    def __call__(self, x: Tensor) -> Tensors:
        return self.defense.statistics(self.down, Batch(x[None], x.new_zeros(1, len(x))))


def with_statistics(readings: Sequence[Reading], defense: Defense, seen: Mapping[int, Seen]) -> Sequence[Reading]:
    """The readings, their observations with what the client sent beside its upload, where the party saw it."""

    def more(reading: Reading) -> Reading:
        return replace(reading, observations=tuple(_with(o, defense, seen.get(o.round)) for o in reading.observations))

    return [more(reading) for reading in readings]


def _with(o: Observation, defense: Defense, now: Seen | None) -> Observation:
    if now is None or now.statistics is None or len(o.clients) > 1:
        return o
    sent = row(now.statistics, now.participants.index(o.clients[0]))
    return replace(o, statistics=Statistics(sent, SentStatistics(defense, now.down)))
