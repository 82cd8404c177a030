"""The contract of attacks by a malicious server, which chooses what it sends in the rounds that it attacks.

In such a round the server sends each participant a message of its choice in the protocol's format. The clients follow
the protocol and answer, and the server reads their answers as it always does. All other rounds are honest, and the
training goes on as if the round had been: the server may throw away what it got.
"""

from __future__ import annotations

import pickle
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

from fedarena.contracts.defense import Defense, State
from fedarena.contracts.inference import GoalName, Inference
from fedarena.contracts.view import Population
from fedarena.core.compact_pickle import dumps
from fedarena.core.global_generators import generators_of
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.core.threat import NotApplicable


@dataclass(frozen=True)
class Message:
    """What a malicious server sends a client.

    Attributes:
        params: the model at which the client then works, by the plain model's names. The server alone needs it.
        down: the broadcast, as a client takes it: as a rule with the names, shapes and types of an honest one.
        secret: what the server drew for it and keeps, as in `fedarena.contracts.defense.Broadcast`.
    """

    params: Tensors
    down: Tensors
    secret: Tensors


@dataclass(frozen=True)
class Opportunity:
    """What a malicious server has before a round that it attacks.

    Attributes:
        protocol: the protocol in that round, with its public facts, which the server can play.
        state: the server before the round.
        participants: the sampled clients.
        victim: the client whose upload is attacked, if the attack is after a single one.
        population: the attacker's own samples, only if the attack declares that it needs them.
    """

    protocol: Defense
    state: State
    participants: tuple[int, ...]
    victim: int
    population: Population | None = None

    @property
    def summed(self) -> bool:
        """Whether the server sees the mean of the uploads alone."""
        return self.protocol.secure is not None

    @property
    def readable(self) -> tuple[int, ...]:
        """The clients whose samples are behind what the server reads: all of a sum, and else the victim."""
        return self.participants if self.summed else (self.victim,)

    def message(self, params: Tensors, rng: Rng) -> Message:
        """What makes clients work at this model (`fedarena.contracts.defense.Defense.chosen_broadcast`)."""
        sent = self.protocol.chosen_broadcast(self.state, params, rng)
        return Message(params, sent.down, sent.secret)


@dataclass(frozen=True)
class Bait:
    """What a malicious server sends in a round.

    Attributes:
        messages: what each participant gets; clients of the same message share the object.
        targets: the clients whose samples are read, which all get the same message unless uploads are summed securely.
            If they are, and these are not all participants, the server takes what the others add to the sum as 0.
        spoiled: names of parameters in which it is not 0, and which are therefore left out of what is read.
    """

    messages: Mapping[int, Message]
    targets: tuple[int, ...]
    spoiled: tuple[str, ...] = ()

    @property
    def message(self) -> Message:
        """What the first target gets."""
        return self.messages[self.targets[0]]

    @property
    def different(self) -> list[Message]:
        """The messages, each once."""
        return list({id(message): message for message in self.messages.values()}.values())

    @classmethod
    def for_all(cls, message: Message, opportunity: Opportunity) -> Bait:
        """The same message for all. A sum is read as a whole, and else the victim's upload."""
        return cls(dict.fromkeys(opportunity.participants, message), opportunity.readable)


class ActiveInference(Inference):
    """An attack that chooses what the server sends, and then reads what comes back.

    Subclasses write `craft` beside `run`. The model that was sent is in `Observation.sent`.
    """

    goal: ClassVar[GoalName] = "active-reconstruction"

    @final
    def bait(self, opportunity: Opportunity, rng: Rng) -> Bait | NotApplicable:
        """`craft` on a copy of what the server has."""
        with generators_of(rng):
            return self.craft(pickle.loads(dumps(opportunity)), rng)

    @abstractmethod
    def craft(self, opportunity: Opportunity, rng: Rng) -> Bait | NotApplicable:
        """What the server sends in a round; or why the attack cannot start."""
