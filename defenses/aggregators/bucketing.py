"""Bucketing (Karimireddy, He & Jaggi 2022), a step before another rule.

It shuffles the rows, cuts them into ⌈n/s⌉ buckets of s (the last may have fewer), and takes the mean of each.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from fedarena.contracts.aggregator import Aggregate, Call, Wrapper, refuse_by_sender
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.defenses.aggregators.cards.bucketing import Options


class Bucketing(Wrapper):
    """The inner rule gets the same f (f corrupted rows spoil at most f buckets) among ⌈n/s⌉ rows.

    All buckets have equal weight: if s does not divide n, the members of the last, smaller one weigh more.
    `used`: the inner rule's weight of each bucket, shared out over its members.
    """

    options: Options

    def check(self, n: int, f: int) -> None:
        refuse_by_sender("bucketing", self.inner)
        count = -(-n // self.options.s)
        try:
            super().check(count, f)
        except UserError as error:  # its message describes the rows of the inner rule
            raise UserError(f"aggregator bucketing: {n} uploads in buckets of {self.options.s}: {error}") from None

    def averages(self, n: int, f: int) -> bool:
        return n % self.options.s == 0 and self.inner.averages(n // self.options.s, f)

    def __call__(self, x: Tensor, call: Call) -> Aggregate:
        members = buckets(len(x), self.options.s, call.rng.child("buckets"))
        means = (members / members.sum(dim=1, keepdim=True)).to(x)
        weights = members.to(call.weights.device) @ call.weights.double()
        of_buckets = replace(call, weights=weights.to(call.weights), rng=call.rng.child("inner"), senders=())
        done = self.inside(means @ x, of_buckets)
        return done.through(means)


def buckets(n: int, s: int, rng: Rng) -> Tensor:
    """[⌈n/s⌉, n]: 1 where a row is in a bucket."""
    order = torch.randperm(n, generator=rng.torch())
    members = torch.zeros(-(-n // s), n, dtype=torch.float64)
    members[torch.arange(n) // s, order] = 1
    return members
