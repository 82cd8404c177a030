"""D-SGD (Lian et al. 2017) on a graph, with self-centered clipping if wanted (He, Karimireddy and Jaggi 2022).

i → j: h_i = W_i − η·up_i, FedAvg's upload at the node's own model
W_i ← h_i + Σ_j w_ij clip(h_j − h_i, τ), clip(z, τ) = z·min(1, τ/‖z‖); or any aggregation rule of the differences
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fedarena.contracts.defense import Broadcast, Cohort, Direction, State
from fedarena.contracts.peer_readings import plain_traces
from fedarena.contracts.trace import Trace
from fedarena.contracts.transcript import Seen
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, row, rows, shaped
from fedarena.core.threat import NotApplicable, Threat
from fedarena.defenses.d_sgd.card import Options
from fedarena.defenses.d_sgd.peer_sgd import PeerSGD


class DSGD(PeerSGD):
    """The protocol; see the module's docstring."""

    options: Options
    sums = False

    @property
    def plain(self) -> bool:
        return super().plain and self.options.clip is None

    def direction(self, state: State, sent: Broadcast, ups: Tensors, cohort: Cohort, rng: Rng) -> Direction:
        if self.options.clip is not None:
            x = rows(ups)
            x = x * (self.options.clip / x.norm(dim=1, keepdim=True)).clamp(max=1)  # a difference of 0 stays 0
            ups = shaped(x, row(ups, 0))
        return self.combine(state, sent, ups, cohort, rng)

    def traces(
        self, threat: Threat, seen: Mapping[int, Seen], rounds: Sequence[int]
    ) -> Sequence[Trace] | NotApplicable:
        return plain_traces(self, threat, seen, rounds)
