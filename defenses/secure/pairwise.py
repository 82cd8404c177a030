"""Secure aggregation by pairwise masks (Bonawitz et al., "Practical Secure Aggregation for Privacy-Preserving
Machine Learning", CCS 2017, Figure 4, against an honest-but-curious server).

Client and server objects exchange messages as bytes (`client`, `server`); this file plays the rounds, counts the
bytes and lets clients drop out. The sum is exact: vectors become integers first (`fixed_point`).

What holds, with n participants and threshold t:
    - the server alone sees uniform words and the sum of the survivors' vectors;
    - fewer than t colluding clients, with or without the server, learn the sum of the others' vectors. For n − 1 of
      them that is the last one's vector;
    - t or more colluding clients hold enough shares to unmask any upload that they get from the wire.

With the option `neighbours` a client shares masks and secrets with k others in place of all, in a random graph drawn
anew each round (Bell et al. 2020; `graph`). Then t counts a client's circle, itself and its k neighbours: t colluders
in one circle unmask its client. Where colluders and clients that dropped cut the graph of the others into parts, they
and the server learn the sum of each part; of a client all of whose neighbours collude, that is its vector.

A server that gives different clients different lists of live clients unmasks an upload, unless 2t exceeds n + the
number of clients that collude with it. A server that swaps public keys is not stopped at all (see the card's
departures).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping

import numpy as np
import torch
from torch import Tensor

from fedarena.contracts.secure_sum import Exchange, SecureSum, TooFewSurvivors, require_two
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.defenses.secure.cards.pairwise_masks import Options
from fedarena.defenses.secure.client import Client
from fedarena.defenses.secure.fixed_point import FixedPoint, signed
from fedarena.defenses.secure.graph import Circles, circles
from fedarena.defenses.secure.key_agreement import Once
from fedarena.defenses.secure.messages import BOX, INDEX, KEYS
from fedarena.defenses.secure.server import ANSWERED, SENT, Server, enough, least
from fedarena.defenses.secure.shamir import SHARE
from fedarena.defenses.secure.stream import Words, read


class PairwiseMasks(SecureSum):
    """The protocol; see the module's docstring."""

    options: Options

    def check(self, n: int) -> None:
        require_two("pairwise-masks", n)
        if (k := self.options.neighbours) % 2:
            raise UserError(f"secure pairwise-masks: option 'neighbours' is {k}, allowed: 0, or an even number")

    @property
    def limit(self) -> float:
        return self.options.bound

    def rounding(self, n: int, dtype: torch.dtype) -> float:
        """step · √(n/12): each vector is rounded to the grid once, the rest is exact."""
        return FixedPoint(self.options.bits, self.options.bound, n).step * math.sqrt(n / 12)

    def require_room(self, vectors: Tensor) -> None:
        """Refuse a bound so far above the largest |value| that all values are rounded to 0: |v| ≤ step/2."""
        (n, _), o = vectors.shape, self.options
        step, largest = FixedPoint(o.bits, o.bound, n).step, float(vectors.abs().max())
        if 0 < largest <= step / 2:
            raise UserError(
                f"secure pairwise-masks: option 'bound' is {o.bound:g}, with which {o.bits} bits hold multiples of "
                f"{step:.3g}, so that all becomes 0 of what clients send, allowed: below "
                f"{math.ldexp(largest, o.bits - 1) / n:.3g} for a largest |value| of {largest:.3g}"
                f"{', or 64 bits' if o.bits == 32 else ''}"
            )

    def threshold(self, n: int) -> int:
        """t: the share `threshold` of those who hold shares of a secret, rounded up, and more than half of them.

        They are all n clients, or a client and its neighbours.

        With half or fewer, a server could announce to one half of the clients that u is alive and to the other half
        that it is gone, and would get t shares of both of u's secrets.
        """
        holders = min(n, self.options.neighbours + 1) if self.options.neighbours else n
        return max(math.ceil(round(self.options.threshold * holders, 9)), holders // 2 + 1)

    def circles(self, n: int, rng: Rng) -> Circles:
        """Who holds shares of whose secrets in the round of that randomness."""
        return circles(n, self.options.neighbours, rng.child("graph"))

    def __call__(self, vectors: Tensor, rng: Rng) -> Exchange:
        n, d = vectors.shape
        self.check(n)
        o, t, once = self.options, self.threshold(n), Once()
        code = FixedPoint(o.bits, o.bound, n)
        rows = enumerate(_encoded(code, vectors))
        clients = {u: Client(u, row, t, rng.child("client", u), once) for u, row in rows}
        server = Server(t, o.bits, self.circles(n, rng))
        before, after = self._leave(n, rng.child("dropout"))

        keys = {u: c.advertise() for u, c in clients.items()}
        roster = server.roster(keys)
        boxes = {u: c.share(roster[u]) for u, c in clients.items()}
        routed = server.route(boxes)
        uploads = {u: c.upload(routed[u]) for u, c in clients.items() if u not in before}
        alive, revealed = dict[int, bytes](), dict[int, bytes]()
        try:
            alive = server.alive(uploads)
            revealed = {u: clients[u].reveal(alive[u]) for u in uploads if u not in after}
            total = code.decode(server.total(revealed))
        except TooFewSurvivors as failed:
            failed.bytes_up = _size(keys) + _size(boxes) + _size(uploads) + _size(revealed)
            failed.bytes_down = _size(roster) + _size(routed) + _size(alive)
            raise

        wire = torch.zeros(n, d, dtype=torch.int32 if o.bits == 32 else torch.int64)
        for u, message in uploads.items():
            wire[u] = torch.from_numpy(signed(read(message, o.bits), o.bits).copy())
        return Exchange(
            wire.to(vectors.device),
            torch.from_numpy(total).to(vectors),
            tuple(uploads),
            extra_up=(_size(keys) + _size(boxes) + _size(revealed)) / n,
            extra_down=(_size(roster) + _size(routed) + _size(alive)) / n,
        )

    def without_messages(self, vectors: Tensor, rng: Rng) -> Exchange:
        """Masks cancel in the sum of words, so that it needs none; bytes follow from the numbers of messages."""
        n, d = vectors.shape
        self.check(n)
        o, t = self.options, self.threshold(n)
        code = FixedPoint(o.bits, o.bound, n)
        rows = _encoded(code, vectors)
        before, after = self._leave(n, rng.child("dropout"))
        sent = {u for u in range(n) if u not in before}
        answered, of = sent - after, self.circles(n, rng)
        pairs = sum(map(len, of))
        boxes, alive, shares = ((INDEX + BOX) * (pairs - n), _within(of, sent, sent), _within(of, answered, range(n)))
        up, down = n * KEYS + boxes + len(sent) * d * o.bits // 8, pairs * (INDEX + KEYS) + boxes
        try:
            enough(t, least(of, sent), SENT)
            up, down = up + shares * (INDEX + SHARE), down + alive * INDEX
            enough(t, least(of, answered), ANSWERED)
        except TooFewSurvivors as failed:
            failed.bytes_up, failed.bytes_down = up, down
            raise
        total = np.zeros(d, np.dtype(f"<u{o.bits // 8}"))
        for u, row in enumerate(rows):
            if u in sent:
                total += row
        decoded = torch.from_numpy(code.decode(total)).to(vectors)
        return Exchange(None, decoded, tuple(sorted(sent)), extra_up=up / n, extra_down=down / n)

    def _leave(self, n: int, rng: Rng) -> tuple[set[int], set[int]]:
        """The clients that drop out before the masked vector, and those that drop out after it.

        Each client drops out with probability `dropout`, and at either time with probability 1/2.
        """
        leaves, early = rng.numpy().random((2, n))
        gone = np.flatnonzero(leaves < self.options.dropout).tolist()
        before = {u for u in gone if early[u] < 0.5}
        return before, set(gone) - before


def _encoded(code: FixedPoint, vectors: Tensor) -> Iterator[Words]:
    """Each vector as words, one after the other. Raises TooLarge before the first one for a value of any of them."""
    low, high = vectors.detach().aminmax()  # NaN if any value is
    code.require(float(torch.maximum(-low, high)))
    return (code.encode(row.detach().cpu().double().numpy()) for row in vectors)


def _within(circles: Circles, of: Collection[int], among: Collection[int]) -> int:
    """How many of `among` the circles of the clients `of` hold together."""
    some = frozenset(among)
    return sum(len(circles[u] & some) for u in of)


def _size(messages: Mapping[int, bytes]) -> int:
    return sum(len(message) for message in messages.values())
