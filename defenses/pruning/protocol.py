"""Gradient pruning (Zhu et al. 2019, Section 5): a client sends the entries of largest magnitude.

T(g)_i = g_i   if |g_i| is among the ⌈(1 − p)·d⌉ largest of its tensor, which has d entries; 0 otherwise
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from fedarena.core.tensors import Tensors
from fedarena.defenses.fedavg.changed_upload import EntriesLeftOut
from fedarena.defenses.pruning.card import Options
from fedarena.problem.task import Batch

BYTES = 8
"""Bytes of an entry that is sent: its number and its place."""


class Pruning(EntriesLeftOut):
    """The protocol; see the module's docstring and `fedarena.defenses.pruning.card.Options`."""

    options: Options

    def change(self, up: Tensors, down: Tensors, batch: Batch, noise: Tensors) -> Tensors:
        return {name: t * largest(t, self.count(t)) for name, t in up.items()}

    def count(self, t: Tensor) -> int:
        """⌈(1 − p)·d⌉, how many entries of a tensor are sent; at least one, and 90 of 100 for p = .1."""
        return max(1, math.ceil(round((1 - self.options.share) * t.numel(), 6)))

    def kept(self, upload: Tensors) -> Tensors:
        return {name: (t != 0).to(t) for name, t in upload.items()}

    def sent_bytes(self, ups: Tensors) -> int:
        return BYTES * sum(len(t) * self.count(t[0]) for t in ups.values())


def largest(t: Tensor, count: int) -> Tensor:
    """1 for the `count` entries of largest magnitude, and for those as large as the last of them; 0 for the others."""
    least = t.abs().flatten().topk(count).values[-1]
    return (t.abs() >= least).to(t.dtype).detach() if count < t.numel() else torch.ones_like(t)
