"""DP-SGD between peers (after Cyffers et al. 2022): every node noises its own step.

i → j: h_i = W_i − η·g_i, g_i the upload of `fedarena.defenses.dp_sgd.protocol` at the node's own model
W_i ← Σ_j w_ij h_j, or any aggregation rule of the differences

All that others learn of a node's samples follows from its g_i, so that DP-SGD's ε holds for all messages together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from fedarena.contracts import peer_readings
from fedarena.contracts.observation import Reading
from fedarena.contracts.peers import Peers
from fedarena.contracts.transcript import Seen
from fedarena.core.threat import NotApplicable, Threat
from fedarena.defenses.dp_sgd.peers_card import Options
from fedarena.defenses.dp_sgd.protocol import DPSGD


class DPPeers(Peers, DPSGD):
    """The protocol; see the module's docstring. `client` and its accounting are DP-SGD's."""

    options: Options
    name = "dp-peers"

    def readings(
        self, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
    ) -> Sequence[Reading] | NotApplicable:
        return peer_readings.readings(self, threat, seen, victims, partial(peer_readings.plain_traces, self))
