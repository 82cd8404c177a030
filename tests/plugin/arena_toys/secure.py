"""Two servers: shares of integers, one for each server, of which neither alone says anything."""

from dataclasses import dataclass

import torch

from fedarena.contracts.secure_sum import Exchange, SecureSum, require_two
from fedarena.core.card import Card
from fedarena.core.errors import UserError
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of the sum by two servers."""

    bits: int = option(32, "binary digits behind the point that are kept of every number", low=1, high=32)


class TwoServers(SecureSum):
    """Client c sends q_c + r_c to the server, where q_c = round(2^bits v_c) and r_c is uniform, modulo 2^64, and r_c
    to a second server, which passes on Σ_c r_c alone. All clients take part: none drops out here."""

    limit = 2.0**16

    def check(self, n):
        require_two("two-servers", n)
        most = 2 ** (47 - self.options.bits)  # so that n·limit·2^bits < 2^63
        if n >= most:
            raise UserError(f"secure two-servers: {n} participants a round, allowed: fewer than {most}, or fewer bits")

    def __call__(self, vectors, rng):
        """vectors: [clients, d], already weighted. `wire` is what arrives at the server that has the model."""
        if not (vectors.abs() <= self.limit).all():
            raise UserError("secure two-servers: an upload has values beyond ±65536, for which there is no integer")
        scale = 2.0**self.options.bits
        shares = torch.empty(vectors.shape, dtype=torch.int64).random_(-(2**63), None, generator=rng.torch())
        shares = shares.to(vectors.device)
        wire = (vectors.double() * scale).round().long() + shares  # int64 wraps around
        total = (wire.sum(0) - shares.sum(0)) / scale
        second = float(8 * vectors.shape[1])  # bytes to the second server
        return Exchange(wire, total.to(vectors), tuple(range(len(vectors))), extra_up=second, extra_down=0.0)


CARD = Card(
    name="two-servers",
    kind="secure",
    title="Sums by two servers that do not talk (a toy)",
    target=TwoServers,
    options=Options,
    paper="Prio: Private, Robust, and Scalable Computation of Aggregate Statistics (NSDI)",
    authors="Corrigan-Gibbs, Boneh",
    year=2017,
    url="https://arxiv.org/abs/1703.06255",
    equations="sums of additive shares, two servers",
    departures=("No proofs that what is sent is in range.", "Shares modulo 2^64 in place of a prime field."),
    facts=(
        ("up", "q + r to the server and r to the second one, 8 bytes a number each"),
        ("server knows", "uniform integers and the sum; both servers together, every upload"),
        ("eavesdropper knows", "as the server: the link to the second one is taken to be encrypted, its sum is not"),
    ),
)
