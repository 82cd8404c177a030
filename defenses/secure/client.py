"""A client of the masking protocol (Bonawitz et al. 2017, Figure 4), driven by messages.

    round 0   advertise   up: public keys c (to encrypt shares) and s (to agree on masks)
    round 1   share       down: public keys               up: shares of s's private key and of b, encrypted for each
    round 2   upload      down: the shares meant for it   up: y_u
    round 4   reveal      down: who sent an upload        up: shares of b of those who did, of s of those who did not

    y_u = x_u + PRG(b_u) + Σ_{v<u} PRG(s_uv) − Σ_{v>u} PRG(s_uv)

The roster of public keys has everybody, or the client and its neighbours (Bell et al. 2020): it shares masks and
secrets with those on it alone.

x_u is a vector of words modulo 2^32 or 2^64, and so is all arithmetic. A client answers every round once: of each
other client it gives a share of b or one of s, and never both. Round 3 of the figure (signed agreement on who is alive)
guards against servers that lie differently to different clients; it is left out, see the card.
"""

from __future__ import annotations

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from fedarena.core.rng import Rng
from fedarena.defenses.secure import shamir
from fedarena.defenses.secure.key_agreement import SIZE, Agree, KeyPair, agree
from fedarena.defenses.secure.messages import BOX, INDEX, KEYS, MASKING, SEALING, pack, unpack
from fedarena.defenses.secure.stream import Words, words


class Refused(Exception):
    """A client stops, because a message of the server breaks the protocol."""


class Client:
    """Client u with its vector.

    Attributes:
        index: u. threshold: t, how many shares give a secret.
        sealing, masking: the key pairs c and s. self_seed: b_u [32 bytes].
        shares: the shares that it holds, by client: a share of s and a share of b, its own included.
    """

    def __init__(self, index: int, vector: Words, threshold: int, rng: Rng, agreement: Agree = agree) -> None:
        """rng: the client's own randomness of this round. agreement: see `key_agreement.Once`."""
        self.index, self.threshold = index, threshold
        self._vector, self._rng, self._agree = vector, rng, agreement
        self._masking_raw = rng.child("s").numpy().bytes(SIZE)
        self.sealing, self.masking = KeyPair.of(rng.child("c").numpy().bytes(SIZE)), KeyPair.of(self._masking_raw)
        self.self_seed = rng.child("b").numpy().bytes(SIZE)
        self.shares: dict[int, tuple[bytes, bytes]] = {}
        self._keys: dict[int, bytes] = {}
        self._done = ""

    def advertise(self) -> bytes:
        """Round 0: the public keys."""
        self._once("", "advertise")
        return self.sealing.public + self.masking.public

    def share(self, roster: bytes) -> bytes:
        """Round 1: the shares for every other client on the roster, each encrypted for that client."""
        self._once("advertise", "share")
        self._keys = unpack(roster, KEYS)
        self._at_least(len(self._keys), "clients on the roster")
        if self._keys.get(self.index) != self.sealing.public + self.masking.public:
            raise Refused("the roster has another key for this client")
        halves = {half for keys in self._keys.values() for half in (keys[:SIZE], keys[SIZE:])}
        if len(halves) < 2 * len(self._keys):
            raise Refused("the roster has a key twice")
        points = [v + 1 for v in self._keys]
        of_key, of_seed = (
            shamir.split(int.from_bytes(secret, "little"), points, self.threshold, self._rng.child("shares", name))
            for name, secret in (("s", self._masking_raw), ("b", self.self_seed))
        )
        boxes = {}
        for v in self._keys:
            two = tuple(f[v + 1].to_bytes(shamir.SHARE, "little") for f in (of_key, of_seed))
            if v == self.index:
                self.shares[v] = two[0], two[1]
            else:
                boxes[v] = self._seal(v).encrypt(_nonce(self.index), b"".join(two), _parties(self.index, v))
        return pack(boxes)

    def upload(self, boxes: bytes) -> bytes:
        """Round 2: the masked vector, as little-endian words. Boxes: by sender."""
        self._once("share", "upload")
        for v, box in unpack(boxes, BOX).items():
            if v == self.index or v not in self._keys:
                raise Refused("shares of a client that is not on the roster, or of itself")
            try:
                two = self._seal(v).decrypt(_nonce(v), box, _parties(v, self.index))
            except InvalidTag:
                raise Refused(f"shares that client {v} did not encrypt for this one") from None
            self.shares[v] = two[: shamir.SHARE], two[shamir.SHARE :]
        self._at_least(len(self.shares), "clients that shared their keys")
        bits, d = 8 * self._vector.itemsize, len(self._vector)
        masked = self._vector + words(self.self_seed, d, bits)
        for v in self.shares:
            if v < self.index:
                masked += words(self._agree(self.masking, self._keys[v][SIZE:], MASKING), d, bits)
            elif v > self.index:
                masked -= words(self._agree(self.masking, self._keys[v][SIZE:], MASKING), d, bits)
        return masked.tobytes()

    def reveal(self, alive: bytes) -> bytes:
        """Round 4: for every client that shared keys one share: of b if it is alive, of s's private key if not."""
        self._once("upload", "reveal")
        living = set(unpack(alive, 0))
        if not living <= set(self.shares):
            raise Refused("a client is said to be alive that shared no keys")
        if self.index not in living:
            raise Refused("this client is said to be gone, which has just uploaded")
        self._at_least(len(living), "clients alive")
        return pack({v: of_seed if v in living else of_key for v, (of_key, of_seed) in self.shares.items()})

    def _once(self, after: str, now: str) -> None:
        if self._done != after:
            raise Refused(
                f"{now} is asked for after {self._done or 'nothing'}, and comes once, after {after or 'nothing'}"
            )
        self._done = now

    def _at_least(self, count: int, what: str) -> None:
        if count < self.threshold:
            raise Refused(f"{count} {what}, fewer than the threshold of {self.threshold}")

    def _seal(self, v: int) -> ChaCha20Poly1305:
        return ChaCha20Poly1305(self._agree(self.sealing, self._keys[v][:SIZE], SEALING))


def _nonce(sender: int) -> bytes:
    """A key of two clients seals one box in either direction."""
    return sender.to_bytes(12, "little")


def _parties(sender: int, recipient: int) -> bytes:
    return sender.to_bytes(INDEX, "little") + recipient.to_bytes(INDEX, "little")
