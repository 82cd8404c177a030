"""Threats as plain data: who attacks, and what the attacker sees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Party = Literal["server", "client", "eavesdropper", "outsider", "malicious-server", "corrupted-clients"]
Form = Literal["paper", "adaptive"]
Knowledge = Literal["none", "own", "omniscient"]

PARTIES: tuple[Party, ...] = ("server", "client", "eavesdropper")
"""The parties that see something of the training."""
EVERYONE: tuple[Party, ...] = (*PARTIES, "outsider")
"""These and the outsider, who can only query the final model: all who are curious and follow the protocol."""
READERS: tuple[Party, ...] = (*EVERYONE, "malicious-server", "corrupted-clients")
"""These and those who choose what they send, in order to read more: a server, or corrupted clients together."""
FORMS: tuple[Form, ...] = ("paper", "adaptive")
KNOWLEDGE: tuple[Knowledge, ...] = ("none", "own", "omniscient")
"""From the least to the most. Who knows more can do all that one can do who knows less."""

KNOWLEDGE_MEANING: dict[Knowledge, str] = {
    "none": "what fake clients receive, the protocol and its rule; no data",
    "own": "the corrupted clients' data, what they receive, the protocol and its rule",
    "omniscient": "besides, every honest upload of the round before it sends its own",
}

FORM_MEANING: dict[Form, str] = {
    "paper": "estimate the plain gradient first, then match it with the plain model",
    "adaptive": "match what crossed the wire through the defense's own client step",
}


@dataclass(frozen=True)
class Visibility:
    """What a party sees of a round. The harness filters the transcript by this alone.

    Attributes:
        down: the broadcast.
        ups: every client's upload.
        state: the server's parameters and the round's secrets.
        own: the party's own batch, memory and upload; its rounds are those in which it was sampled.
        chooses: whether the party chooses what it sends in the rounds that it attacks, within the protocol's format:
            what clients get, or its own uploads.
    """

    down: bool
    ups: bool
    state: bool
    own: bool
    chooses: bool = False


VISIBILITY: dict[Party, Visibility] = {
    "server": Visibility(down=True, ups=True, state=True, own=False),
    "client": Visibility(down=True, ups=False, state=False, own=True),
    "eavesdropper": Visibility(down=True, ups=True, state=False, own=False),
    "outsider": Visibility(down=False, ups=False, state=False, own=False),
    "malicious-server": Visibility(down=True, ups=True, state=True, own=False, chooses=True),
    "corrupted-clients": Visibility(down=True, ups=False, state=False, own=True, chooses=True),
}


CURIOUS = 0
"""The client that is curious where one is."""


@dataclass(frozen=True)
class Threat:
    """A party and the form of its attack.

    Without `knows` the party reads: it is honest but curious and follows the protocol, or chooses what it
    sends in order to read. With it the party is the corrupted clients together, who send what they like.

    Attributes:
        party: where the adversary sits.
        form: `paper` as the seed papers tried it, `adaptive` with knowledge of the protocol.
        client: which client the curious party `client` is.
        knows: what corrupted clients know when they poison.
    """

    party: Party
    form: Form
    client: int = CURIOUS
    knows: Knowledge | None = None

    @property
    def visibility(self) -> Visibility:
        return VISIBILITY[self.party]


@dataclass(frozen=True)
class NotApplicable:
    """An attack that cannot start. A result, shown with its reason; never an error or a zero."""

    reason: str
