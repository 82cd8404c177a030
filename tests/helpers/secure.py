"""The masking protocol up to the masked uploads, with everybody's state in sight, and what coalitions make of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import numpy as np
from scipy.stats import chisquare

from fedarena.core.rng import Rng
from fedarena.defenses.secure import shamir
from fedarena.defenses.secure.client import Client
from fedarena.defenses.secure.graph import circles
from fedarena.defenses.secure.key_agreement import SIZE, Agree, KeyPair, agree
from fedarena.defenses.secure.messages import MASKING
from fedarena.defenses.secure.server import Server
from fedarena.defenses.secure.stream import Words, read, words


@dataclass(frozen=True)
class Play:
    """A round after round 2. uploads: y_u by client; alive: the server's list of them as a message, by recipient."""

    clients: list[Client]
    server: Server
    uploads: dict[int, Words]
    alive: dict[int, bytes]

    def total(self, silent: Collection[int] = ()) -> Words:
        """The rest of the round, in which the clients of `silent` do not answer."""
        return self.server.total({u: self.clients[u].reveal(self.alive[u]) for u in self.uploads if u not in silent})


def play(
    vectors: Words,
    t: int,
    rng: Rng,
    gone: Collection[int] = (),
    agreement: Agree = agree,
    neighbours: int = 0,
) -> Play:
    """Rounds 0 to 2; the clients of `gone` drop out before their masked vectors."""
    bits = 8 * vectors.itemsize
    clients = [Client(u, x, t, rng.child(u), agreement) for u, x in enumerate(vectors)]
    server = Server(t, bits, circles(len(vectors), neighbours, rng.child("graph")))
    roster = server.roster({c.index: c.advertise() for c in clients})
    routed = server.route({c.index: c.share(roster[c.index]) for c in clients})
    sent = {c.index: c.upload(routed[c.index]) for c in clients if c.index not in gone}
    alive = server.alive(sent)
    return Play(clients, server, {u: read(message, bits) for u, message in sent.items()}, alive)


def secrets(members: Iterable[Client], victim: int) -> tuple[bytes, bytes]:
    """What the members' shares of a victim's secrets join to: s's private key and b."""
    held = {m.index + 1: m.shares[victim] for m in members}
    lagrange = shamir.weights(held)
    key, seed = (
        shamir.join({x: int.from_bytes(two[which], "little") for x, two in held.items()}, lagrange) for which in (0, 1)
    )
    return (key % 2**256).to_bytes(SIZE, "little"), (seed % 2**256).to_bytes(SIZE, "little")


def without(upload: Words, victim: int, pair: KeyPair, publics: dict[int, bytes]) -> Words:
    """The upload less the masks that `pair`, the victim's, agrees on with the holders of `publics`."""
    bare = upload.copy()
    for v, public in publics.items():
        mask = words(agree(pair, public, MASKING), len(upload), 8 * upload.itemsize)
        bare = bare - mask if v < victim else bare + mask
    return bare


def uniform(sample: Words) -> float:
    """The p-value of chi-square for the bytes of the words being uniform."""
    return float(chisquare(np.bincount(np.frombuffer(sample.tobytes(), np.uint8), minlength=256)).pvalue)
