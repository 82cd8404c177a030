"""The server of the masking protocol (Bonawitz et al. 2017, Figure 4). It holds only what it was sent.

round 0   roster    in: public keys           out: all of them, to all
round 1   route     in: encrypted shares      out: to each client those meant for it
round 2   alive     in: masked vectors        out: who sent one (U_3), to those
round 4   total     in: shares, from U_5      Σ_{u∈U3} x_u = Σ_{u∈U3} y_u − Σ_{u∈U3} PRG(b_u)
                                                   ± Σ_{u∈U3, v∈U2∖U3} PRG(s_uv)
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fedarena.contracts.secure_sum import TooFewSurvivors
from fedarena.defenses.secure import shamir
from fedarena.defenses.secure.key_agreement import SIZE, KeyPair, agree
from fedarena.defenses.secure.messages import BOX, MASKING, pack, unpack
from fedarena.defenses.secure.stream import Words, read, words

SENT, ANSWERED = "sent a masked vector", "answered the unmasking"
"""What too few clients did, if a round fails."""


class Server:
    """The server of one round. Messages that it receives are given by sender.

    Attributes:
        threshold: t. bits: of a word.
        keys, boxes, uploads: the messages of rounds 0, 1 and 2, by sender.
    """

    def __init__(self, threshold: int, bits: int) -> None:
        self.threshold, self.bits = threshold, bits
        self.keys: dict[int, bytes] = {}
        self.boxes: dict[int, dict[int, bytes]] = {}
        self.uploads: dict[int, Words] = {}

    def roster(self, keys: Mapping[int, bytes]) -> bytes:
        """Round 0: the public keys of all clients."""
        enough(self.threshold, len(keys), "advertised keys")
        self.keys = dict(keys)
        return pack(self.keys)

    def route(self, boxes: Mapping[int, bytes]) -> dict[int, bytes]:
        """Round 1: for each client that shared its keys, the shares that the others encrypted for it."""
        enough(self.threshold, len(boxes), "shared their keys")
        self.boxes = {sender: unpack(message, BOX) for sender, message in boxes.items()}
        return {to: pack({v: sent[to] for v, sent in self.boxes.items() if v != to}) for to in self.boxes}

    def alive(self, uploads: Mapping[int, bytes]) -> bytes:
        """Round 2: the list of clients that sent a masked vector."""
        enough(self.threshold, len(uploads), SENT)
        self.uploads = {u: read(message, self.bits) for u, message in uploads.items()}
        return pack(dict.fromkeys(self.uploads, b""))

    def total(self, revealed: Mapping[int, bytes]) -> Words:
        """Round 4: the sum of all vectors that were sent. Raises TooFewSurvivors."""
        enough(self.threshold, len(revealed), ANSWERED)
        answers = {u + 1: unpack(message, shamir.SHARE) for u, message in list(revealed.items())[: self.threshold]}
        lagrange = shamir.weights(answers)
        d = len(next(iter(self.uploads.values())))
        total = np.zeros(d, np.dtype(f"<u{self.bits // 8}"))
        for v in self.boxes:
            shares = {point: int.from_bytes(answer[v], "little") for point, answer in answers.items()}
            secret = shamir.join(shares, lagrange).to_bytes(SIZE, "little")
            if v in self.uploads:
                total += self.uploads[v] - words(secret, d, self.bits)
            else:
                self._settle(total, v, KeyPair.of(secret))
        return total

    def _settle(self, total: Words, gone: int, pair: KeyPair) -> None:
        """Remove from the total, in place, the masks that the live clients had agreed on with one that is gone."""
        for u in self.uploads:
            mask = words(agree(pair, self.keys[u][SIZE:], MASKING), len(total), self.bits)
            if gone < u:
                total -= mask
            else:
                total += mask


def enough(threshold: int, count: int, did: str) -> None:
    """Raise TooFewSurvivors if fewer clients than the threshold are left."""
    if count < threshold:
        raise TooFewSurvivors(
            f"secure pairwise-masks: {count} clients {did}, allowed: at least {threshold} "
            "(see options 'threshold' and 'dropout')"
        )
