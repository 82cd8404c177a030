"""QSGD (Alistarh et al. 2017, Section 3.1): stochastic quantisation of uploads, bucket by bucket.

    T(v)_i = ‖v‖₂·sgn(v_i)·ξ_i,   ξ_i = (l + 1)/s with probability |v_i|·s/‖v‖₂ − l, else l/s

v is a bucket of entries, l = ⌊|v_i|·s/‖v‖₂⌋ and s the number of levels. E T(v) = v, and the variance is at most
min(d/s², √d/s)·‖v‖² for a bucket of d entries (Lemma 3.1).
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, flatten, shaped
from fedarena.defenses.fedavg.changed_upload import ChangedUpload
from fedarena.defenses.qsgd.card import Options
from fedarena.problem.task import Batch

DRAWN = "qsgd.drawn"
"""What a client draws to round by: uniform numbers [d], one an entry."""


class QSGD(ChangedUpload):
    """The protocol; see the module's docstring and `fedarena.defenses.qsgd.card.Options`."""

    options: Options
    undisclosed = "round to levels by random numbers of their own"

    @property
    def levels(self) -> int:
        """s."""
        return int(2 ** (self.options.bits - 1) - 1)

    def draw(self, rng: Rng) -> Tensors:
        return {DRAWN: torch.rand(self.entries, generator=rng.torch())}

    def change(self, up: Tensors, down: Tensors, batch: Batch, noise: Tensors) -> Tensors:
        """T; without the client's numbers its expectation, which is the upload."""
        if DRAWN not in noise:
            return up
        return shaped(quantised(flatten(up), noise[DRAWN], self.levels, self.options.bucket), up)

    def sent_bytes(self, ups: Tensors) -> int:
        clients = len(next(iter(ups.values())))
        return clients * (math.ceil(self.entries * self.options.bits / 8) + 4 * -(-self.entries // self.options.bucket))


def quantised(v: Tensor, drawn: Tensor, levels: int, bucket: int) -> Tensor:
    """T(v) [d], by uniform numbers [d] in [0, 1); 0 where a bucket is 0."""
    d = len(v)
    buckets, uniform = (F.pad(t, (0, -d % bucket)).reshape(-1, bucket) for t in (v, drawn.to(v)))
    lengths = buckets.norm(dim=1, keepdim=True)
    height = levels * (buckets.abs() / lengths.clamp_min(torch.finfo(v.dtype).tiny))
    level = height.floor() + (uniform < height - height.floor()).to(v)
    rounded: Tensor = lengths * buckets.sign() * level / levels
    return rounded.reshape(-1)[:d]
