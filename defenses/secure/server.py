"""The server of the masking protocol (Bonawitz et al. 2017, Figure 4). It holds only what it was sent.

round 0   roster    in: public keys           out: all of them, to all; or to each those of its circle
round 1   route     in: encrypted shares      out: to each client those meant for it
round 2   alive     in: masked vectors        out: who sent one (U_3), to those
round 4   total     in: shares, from U_5      Σ_{u∈U3} x_u = Σ_{u∈U3} y_u − Σ_{u∈U3} PRG(b_u)
                                                   ± Σ_{u∈U3, v∈U2∖U3} PRG(s_uv)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache

import numpy as np

from fedarena.contracts.secure_sum import TooFewSurvivors
from fedarena.defenses.secure import shamir
from fedarena.defenses.secure.graph import Circles
from fedarena.defenses.secure.key_agreement import SIZE, KeyPair, agree
from fedarena.defenses.secure.messages import BOX, MASKING, pack, unpack
from fedarena.defenses.secure.stream import Words, read, words

SENT, ANSWERED = "sent a masked vector", "answered the unmasking"
"""What too few clients did, if a round fails."""


class Server:
    """The server of one round. Messages that it receives are given by sender.

    Attributes:
        threshold: t. bits: of a word.
        circles: for each client those that hold shares of its secrets, itself included.
        keys, boxes, uploads: the messages of rounds 0, 1 and 2, by sender.
    """

    def __init__(self, threshold: int, bits: int, circles: Circles) -> None:
        self.threshold, self.bits, self.circles = threshold, bits, circles
        self.keys: dict[int, bytes] = {}
        self.boxes: dict[int, dict[int, bytes]] = {}
        self.uploads: dict[int, Words] = {}

    def roster(self, keys: Mapping[int, bytes]) -> dict[int, bytes]:
        """Round 0: for each client the public keys of its circle."""
        enough(self.threshold, least(self.circles, keys), "advertised keys")
        self.keys = dict(keys)
        return self._to_circles(self.keys)

    def route(self, boxes: Mapping[int, bytes]) -> dict[int, bytes]:
        """Round 1: for each client that shared its keys, the shares that the others encrypted for it."""
        enough(self.threshold, least(self.circles, boxes), "shared their keys")
        self.boxes = {sender: unpack(message, BOX) for sender, message in boxes.items()}
        return {
            to: pack({v: self.boxes[v][to] for v in sorted(self.circles[to]) if v != to and v in self.boxes})
            for to in self.boxes
        }

    def alive(self, uploads: Mapping[int, bytes]) -> dict[int, bytes]:
        """Round 2: for each client that sent a masked vector those of its circle that did."""
        enough(self.threshold, least(self.circles, uploads), SENT)
        self.uploads = {u: read(message, self.bits) for u, message in uploads.items()}
        return self._to_circles(dict.fromkeys(self.uploads, b""))

    def total(self, revealed: Mapping[int, bytes]) -> Words:
        """Round 4: the sum of all vectors that were sent. Raises TooFewSurvivors."""
        enough(self.threshold, least(self.circles, revealed), ANSWERED)
        answers = {u: unpack(message, shamir.SHARE) for u, message in revealed.items()}
        weights = cache(shamir.weights)
        total = np.zeros(len(next(iter(self.uploads.values()))), np.dtype(f"<u{self.bits // 8}"))
        for v in self.boxes:
            holders = [u for u in answers if u in self.circles[v]][: self.threshold]
            shares = {u + 1: int.from_bytes(answers[u][v], "little") for u in holders}
            secret = shamir.join(shares, weights(tuple(shares))).to_bytes(SIZE, "little")
            if v in self.uploads:
                total += self.uploads[v] - words(secret, len(total), self.bits)
            else:
                self._settle(total, v, KeyPair.of(secret))
        return total

    def _to_circles(self, entries: Mapping[int, bytes]) -> dict[int, bytes]:
        """For each client that has an entry those of its circle, as one message."""
        made = cache(lambda circle: pack({v: entries[v] for v in sorted(circle) if v in entries}))
        return {u: made(self.circles[u]) for u in entries}

    def _settle(self, total: Words, gone: int, pair: KeyPair) -> None:
        """Remove from the total, in place, the masks that the live clients had agreed on with one that is gone."""
        for u in self.circles[gone].intersection(self.uploads):
            mask = words(agree(pair, self.keys[u][SIZE:], MASKING), len(total), self.bits)
            if gone < u:
                total -= mask
            else:
                total += mask


def least(circles: Circles, left: Collection[int]) -> int:
    """The least number of clients left in a circle."""
    left = set(left)
    return min(len(circle & left) for circle in set(circles))


def enough(threshold: int, count: int, did: str) -> None:
    """Raise TooFewSurvivors if fewer clients than the threshold are left."""
    if count < threshold:
        raise TooFewSurvivors(
            f"secure pairwise-masks: {count} clients {did}, allowed: at least {threshold} "
            "(see options 'threshold' and 'dropout')"
        )
