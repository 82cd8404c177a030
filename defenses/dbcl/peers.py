"""DBCL between peers (Zhang & Wang 2021, Appendix D): neighbours exchange sketches of their models.

i → j: 4-byte seed ψ_ij, h_i S_ij of every hidden layer, biases and output layer in clear
W_i ← h_i − c Σ_j w_ij (h_i − h_j) S_ij S_ijᵀ, c = s/d (contraction) or 1 (unbiased); S_ij = S_ji is new in every round
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from fedarena.contracts.aggregator import Aggregator
from fedarena.contracts.peer_readings import heard
from fedarena.contracts.taken_messages import are_told, nearest_mean
from fedarena.contracts.trace import Trace
from fedarena.contracts.transcript import Seen
from fedarena.core.errors import UserError
from fedarena.core.tensors import Tensors, flatten
from fedarena.core.threat import NotApplicable, Threat
from fedarena.defenses.d_sgd.peer_sgd import PeerSGD
from fedarena.defenses.dbcl.neighbour_estimate import Weights, smoothed_traces, unsketched_traces
from fedarena.defenses.dbcl.peer_wire import PeerWire
from fedarena.defenses.dbcl.peers_card import Options
from fedarena.defenses.dbcl.wire import SEED, DBCLWire
from fedarena.problem.task import Task


class DBCLPeers(PeerSGD):
    """The protocol; see the module's docstring."""

    options: Options

    def __init__(self, options: Options, task: Task, rule: Aggregator | None = None) -> None:
        super().__init__(options, task, rule)
        wire = DBCLWire.of(task, options.hash)
        self.wire = PeerWire(wire, options.ratio, unbiased=options.mixing == "unbiased")
        if not wire.shapes:
            raise UserError(
                "defense dbcl-peers: the model has no layer but the output, which is never sketched: give it one"
            )

    @property
    def plain(self) -> bool:
        return False

    def message(self, half: Tensors, secret: int) -> Tensors:
        return self.wire.message(half, secret)

    def difference(self, half: Tensors, message: Tensors, secret: int) -> Tensors:
        own = self.wire.message(half, secret)
        return self.wire.expanded({name: own[name] - t for name, t in message.items() if name != SEED}, message)

    def traces(
        self, threat: Threat, seen: Mapping[int, Seen], rounds: Sequence[int]
    ) -> Sequence[Trace] | NotApplicable:
        if threat.form == "paper":
            return unsketched_traces(self.wire.wire, seen, rounds)
        return smoothed_traces(self.wire, self.mixing_told, self.task, seen, rounds)

    def mixing_told(self, stretch: Sequence[Seen], node: int) -> Sequence[Weights]:
        """The weights by which a node mixed in each round of a stretch, as far as its neighbours can tell."""
        around, taken = self.graph.mixing[node], self.takes_mean_of(node)
        if not are_told(taken):
            return [around] * len(stretch)
        sent = [{j: flatten(self.wire.in_clear(m)).double() for j, m in heard(now).items()} for now in stretch]
        told = [nearest_mean(around, before, after[node], taken)[0] for before, after in pairwise(sent)]
        return [*told, around]  # nothing follows the last round
