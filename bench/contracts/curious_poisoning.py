"""The contract of attacks by corrupted clients that poison a round in order to read another client's samples.

In such a round the corrupted clients send uploads of their choice. The server treats all uploads as it always does, and
sends its next model. What the difference of the two models shows is read as the victim's upload. All other rounds are
honest, and the training goes on as if the round had been.
"""

from __future__ import annotations

import pickle
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, final

from fedarena.contracts.defense import Defense
from fedarena.contracts.inference import GoalName, Inference
from fedarena.contracts.poisoning import Samples, as_uploads
from fedarena.core.compact_pickle import dumps
from fedarena.core.errors import place_of
from fedarena.core.global_generators import generators_of
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, shapes_of
from fedarena.core.threat import Knowledge, NotApplicable


@dataclass(frozen=True)
class Turn:
    """What the corrupted clients have before they send their uploads of a round that they attack.

    Attributes:
        protocol: the protocol in that round with its rule, which are public, and which they can play.
        round: the round's number.
        down: the broadcast.
        participants: the sampled clients. clients: those of them that are corrupted [f].
        victim: the client that they are after, an honest one.
        own: the uploads [f, ...] that they would send if they followed the protocol.
        data: the corrupted clients' own samples, pooled.
        honest: the others' uploads [n − f, ...], only if they are omniscient; else {}.
    """

    protocol: Defense
    round: int
    down: Tensors
    participants: tuple[int, ...]
    clients: tuple[int, ...]
    victim: int
    own: Tensors
    data: Samples
    honest: Tensors

    @property
    def others(self) -> tuple[int, ...]:
        """The honest participants, in the order of `honest`."""
        return tuple(client for client in self.participants if client not in self.clients)


class CuriousPoisoning(Inference):
    """An attack that chooses what corrupted clients send, and then reads what the server makes of it.

    Subclasses write `craft` beside `run`, and `knows` if they can be omniscient.
    """

    goal: ClassVar[GoalName] = "curious-poisoning"

    @property
    def knows(self) -> Knowledge:
        """What the corrupted clients know before they send: `own`, or `omniscient`."""
        return "own"

    @final
    def poison(self, turn: Turn, rng: Rng) -> Tensors | NotApplicable:
        """`craft` on a copy of what they have. Raises UnusableAnswer where it gives no uploads."""
        with generators_of(rng):
            sent = self.craft(pickle.loads(dumps(turn)), rng)
        if isinstance(sent, NotApplicable):
            return sent
        return as_uploads(sent, shapes_of(turn.own), len(turn.clients), place_of(type(self).craft))

    @abstractmethod
    def craft(self, turn: Turn, rng: Rng) -> Tensors | NotApplicable:
        """What the corrupted clients send [f, ...]; or why the attack cannot start."""
