"""FLTrust (Cao, Fang, Liu & Gong 2021, Algorithm 2). The server holds a few samples and computes an update g_0 itself.

TS_i = ReLU(cos(x_i, g_0))
g = (1/Σ_j TS_j) Σ_i TS_i (‖g_0‖/‖x_i‖) x_i;  0 when no upload is trusted
"""

from __future__ import annotations

import torch
from torch import Tensor

from fedarena.contracts.aggregator import Aggregate, Aggregator, Call
from fedarena.defenses.aggregators.cards.fltrust import Options
from fedarena.defenses.aggregators.lengths import TINY, directions, lengths


class FLTrust(Aggregator):
    """Any number of corrupted uploads is allowed: f is not used.

    `used`: TS_i ‖g_0‖ / (‖x_i‖ Σ_j TS_j); `votes`: TS_i / Σ_j TS_j.
    """

    options: Options

    @property
    def auxiliary(self) -> int:
        return self.options.root

    @property
    def auxiliary_option(self) -> str:
        return "root"

    def __call__(self, x: Tensor, call: Call) -> Aggregate:
        assert call.reference is not None  # the harness gives one to rules that declare `auxiliary`
        own = call.reference().to(x)
        size, norms = lengths(own[None]), lengths(x)
        units = directions(x, norms)
        trust = (units @ directions(own[None], size)[0]).relu()
        if trust.sum() > 0:
            trust = trust / trust.sum()
        used = torch.where(norms > TINY, size / norms, 0).to(x) * trust
        return Aggregate(size.to(x) * (trust @ units), used, votes=trust.to(x))
