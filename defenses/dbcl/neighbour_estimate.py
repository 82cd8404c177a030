"""What a neighbour, or a coalition of them, makes of DBCL's sketches between peers.

The victim v sends h_t S_t, a row of h having d entries and S s columns. In the paper form two consecutive sketches are
expanded, h_t S_t Sᵀ (option I) or h_t S_t S_t† (option II), and subtracted.

In the adaptive form a Kalman smoother estimates h_t from the sketches of all rounds. Updates do not lie in the row
space of one Sᵀ, as they do with a server, so the state is the victim's model itself, row by row:

    W_{t+1} = h_t − c Σ_a w_va (h_t − h_a) S_a S_aᵀ − κ (h_t − m_t)      what v mixes
    h_{t+1} = W_{t+1} + e,   e ~ N(0, I)                                   its step; the unit is the step's size
    seen      h_t [S_1 … S_k] of the k members a of the coalition, without noise

The first sum is known exactly, since v's and a's messages are seen in one S. κ = c' Σ_j w_vj is the weight of the other
neighbours j of v, whose messages to v are not heard, and c' I = E[c S Sᵀ]. m_t is the mean of their models, by the same
weights. What such a j sends to the coalition shows its model, as a smoother of its own follows it; where it sends
nothing there, the mean of all models that the coalition has or follows stands in for it. An eavesdropper follows the
other end of its edge, with κ = 0, and then the victim. The first h begins at the public model.

Of an aggregation rule's mixing the same is assumed, though it mixes otherwise: what it leaves out or bounds is taken
to be part of the step. Of a rule that takes the mean of few messages, such as Krum, w_vj are told by what crosses in
clear, biases and the output layer (`fedarena.contracts.taken_messages`). The gradient is then (W_t − h_t)/η at the
smoothed models. With k·s ≥ d the sketches of a round show most of h_t itself, and m_t alone is a guess.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from fedarena.contracts.peer_readings import heard, victim_of
from fedarena.contracts.trace import Trace
from fedarena.contracts.transcript import Seen
from fedarena.core.tensors import Tensors
from fedarena.defenses.dbcl.peer_wire import PeerWire
from fedarena.defenses.dbcl.update_estimate import PSEUDO_INVERSE, TRANSPOSE, unsketched
from fedarena.defenses.dbcl.wire import DBCLWire
from fedarena.problem.task import Task

RELATIVE_NOISE = 1e-6
"""The variance of a sketch's entry beside that of a step: messages have single precision."""
UNKNOWN = 1e4
"""The variance of a model's entry beside that of a step, for a party that knows no model to begin with."""


def unsketched_traces(wire: DBCLWire, seen: Mapping[int, Seen], rounds: Sequence[int]) -> list[Trace]:
    """Options I and II: consecutive sketches, expanded."""
    names = tuple(wire.shapes)

    def model(t: int, option: str) -> Tensors:
        return unsketched(wire, next(iter(_of_victim(seen[t]).values())), option)

    return [
        Trace(option, {t: (model(t - 1, option) if t else seen[t].down, model(t, option)) for t in rounds}, names)
        for option in (TRANSPOSE, PSEUDO_INVERSE)
    ]


def _of_victim(now: Seen) -> dict[int, Tensors]:
    """What the victim sent, by receiver."""
    return _sent_by(victim_of(now), now)


def _sent_by(node: int, now: Seen) -> dict[int, Tensors]:
    """What a node sent to those whose messages are seen, by receiver."""
    return {receiver: sent for (sender, receiver), sent in now.messages.items() if sender == node}


Weights = Mapping[int, float]
"""Node → the weight of its message; a node that is not named has none."""
Mixing = Callable[[Sequence[Seen], int], Sequence[Weights]]
"""A stretch of rounds and a node → the weights of the messages that it mixed in each round."""
Models = Mapping[int, Sequence[Tensor]]
"""Node → h_t of one parameter in each round of a stretch, [rows, d]."""


@dataclass(frozen=True)
class Look:
    """What one round shows of one parameter, in double precision.

    Attributes:
        seen: h_t [S_1 … S_k], [rows, k·s]; h_t itself where `sketches` is None.
        known: what v mixes besides (1 − κ) h_t, [rows, d].
        sketches: [S_1 … S_k], [d, k·s]; None: the parameter crosses in clear.
        keeps: 1 − κ.
    """

    seen: Tensor
    known: Tensor
    sketches: Tensor | None = None
    keeps: float = 1.0


def smoothed_traces(
    wire: PeerWire, mixing: Mixing, task: Task, seen: Mapping[int, Seen], rounds: Sequence[int]
) -> list[Trace]:
    """The smoother's; see the module's docstring. Each stretch of rounds without a gap is read for itself.

    Args:
        mixing: a stretch and a node → the weights by which it mixed in each round.
    """
    models: dict[int, tuple[Tensors, Tensors]] = {t: ({}, {}) for t in rounds}
    shapes = {name: p.shape for name, p in task.model.named_parameters()}
    device = next(iter(_of_victim(seen[rounds[0]]).values()))[next(iter(shapes))].device
    for stretch in _stretches(sorted(seen)):
        wanted = [t for t in rounds if t in stretch and (t == 0 or t > stretch[0])]
        if not wanted:
            continue
        views = [seen[t] for t in stretch]
        weights = {node: mixing(views, node) for node in sorted(heard(views[0]).keys() - views[0].halves.keys())}
        for name, shape in shapes.items():
            before, after = _parameter(wire, weights, views, name)
            for t in wanted:
                for model, x in zip(models[t], (before[t - stretch[0]], after[t - stretch[0]]), strict=True):
                    model[name] = x.reshape(shape).to(device)
    return [Trace("smoother", models, tuple(wire.wire.shapes))]


def _stretches(rounds: Sequence[int]) -> list[list[int]]:
    """Ascending rounds, cut where one is missing."""
    cut: list[list[int]] = []
    for t in rounds:
        if cut and cut[-1][-1] == t - 1:
            cut[-1].append(t)
        else:
            cut.append([t])
    return cut


def _parameter(
    wire: PeerWire, weights: Mapping[int, Sequence[Weights]], stretch: Sequence[Seen], name: str
) -> tuple[list[Tensor], list[Tensor]]:
    """The victim's W_t and h_t of one parameter in each round of a stretch, in single precision.

    Args:
        weights: by which each of the nodes that the party follows mixed in each round.
    """
    own = {i: [_flat(now.halves[i][name]) for now in stretch] for i in stretch[0].halves}
    victim = victim_of(stretch[0])

    def followed(node: int, models: Models) -> tuple[list[Tensor], list[Tensor]]:
        return _followed(_Path(wire, weights=weights[node], stretch=stretch, name=name, node=node, models=models))

    before, after = followed(victim, {j: followed(j, own)[1] for j in weights if j != victim} | own)
    return [w.float() for w in before], [h.float() for h in after]


@dataclass(frozen=True)
class _Path:
    """A node over the rounds of a stretch.

    Attributes:
        wire: how messages are read. stretch: the rounds. weights: of the messages that the node mixed in each of them.
        name: the parameter. node: who is followed. models: of other nodes, which are had or followed.
    """

    wire: PeerWire
    weights: Sequence[Weights]
    stretch: Sequence[Seen]
    name: str
    node: int
    models: Models

    def sent(self, t: int) -> dict[int, Tensors]:
        """The node's messages of a round."""
        return _sent_by(self.node, self.stretch[t])

    @cached_property
    def factor(self) -> float:
        """c' = c·‖S‖²/d of the first round's S: the same in all rounds, but for a gaussian S, where it is one draw."""
        message = next(iter(self.sent(0).values()))
        factor = self.wire.factor(message, self.name)
        if self.name not in self.wire.wire.shapes:
            return factor
        sketch = self.wire.wire.open(message)[1][self.name]
        return factor * sketch.squared_norm() / sketch.coordinates

    def shares(self, t: int) -> dict[int, float]:
        """c'·w_vj of each neighbour j whose messages to the node are not seen; {} for one who knows no other model."""
        if not self.models:
            return {}
        sent = self.sent(t)
        return {j: self.factor * w for j, w in self.weights[t].items() if j != self.node and j not in sent}

    def mixed_in(self, t: int) -> Tensor:
        """κ·m_t, what these neighbours are expected to add."""
        shares = self.shares(t)
        if not shares:
            return torch.zeros(())
        any_node = torch.stack([model[t] for model in self.models.values()]).mean(0)
        models = (self.models[j][t] if j in self.models else any_node for j in shares)
        return sum((share * m for share, m in zip(shares.values(), models, strict=True)), torch.zeros(()))

    def look(self, t: int) -> Look:
        """What round t shows."""
        now, sent = self.stretch[t], self.sent(t)
        known, keeps = self.mixed_in(t), 1 - sum(self.shares(t).values())
        for member, message in sent.items():
            difference = message[self.name] - now.messages[member, self.node][self.name]
            mixed = self.wire.expanded({self.name: difference}, message)[self.name]
            known = known - self.weights[t].get(member, 0.0) * _flat(mixed)
        if self.name not in self.wire.wire.shapes:
            return Look(_flat(next(iter(sent.values()))[self.name]), known, keeps=keeps)
        opened = [self.wire.wire.open(message) for message in sent.values()]
        seen = torch.cat([_flat(params[self.name]) for params, _ in opened], 1)
        here = torch.device("cpu")
        return Look(seen, known, torch.cat([sketches[self.name].to(here).dense() for _, sketches in opened], 1), keeps)


def _followed(path: _Path) -> tuple[list[Tensor], list[Tensor]]:
    """W_t and h_t of a node's parameter in each round."""
    first, looks = path.stretch[0], [path.look(t) for t in range(len(path.stretch))]
    if first.index == 0:
        begin, variance = _flat(first.down[path.name]), 1.0
    elif first.halves:
        begin = torch.stack([_flat(half[path.name]) for half in first.halves.values()]).mean(0)
        variance = sum(looks[0].keeps ** (2 * i) for i in range(first.index + 1))
    else:
        begin, variance = torch.zeros_like(looks[0].known), UNKNOWN
    halves = [look.seen for look in looks] if looks[0].sketches is None else smooth(looks, begin, variance)
    return [begin, *(look.keeps * h + look.known for h, look in zip(halves, looks, strict=True))][:-1], halves


def _flat(w: Tensor) -> Tensor:
    """[rows, d] in double precision, on the CPU; a bias is one row."""
    return (w.flatten(1) if w.dim() > 1 else w[None]).double().cpu()


def smooth(looks: Sequence[Look], begin: Tensor, variance: float) -> list[Tensor]:
    """The likeliest h_t of each round, [rows, d]: Kalman's filter forward, Rauch, Tung and Striebel's smoother back.

    Args:
        looks: all with sketches. begin: the mean of the first h, [rows, d]. variance: of each of its entries.
    """
    one = torch.eye(begin.shape[1]).to(begin)
    x, p = begin, variance * one
    filtered, predicted = [], []
    for look in looks:
        predicted.append((x, p))
        assert look.sketches is not None
        cross = p @ look.sketches
        inner = look.sketches.T @ cross + RELATIVE_NOISE * torch.eye(cross.shape[1]).to(cross)
        gain = torch.linalg.solve(inner, cross.T).T
        x = x + (look.seen - x @ look.sketches) @ gain.T
        p = p - gain @ cross.T
        filtered.append((x, p))
        x, p = look.keeps * x + look.known, look.keeps**2 * p + one
    smoothed = [filtered[-1][0]]
    steps = zip(looks[:-1], filtered[:-1], predicted[1:], strict=True)
    for look, (x, p), (ahead, covariance) in reversed(list(steps)):
        back = torch.linalg.solve(covariance, look.keeps * p)  # its transpose, both being symmetric
        smoothed.append(x + (smoothed[-1] - ahead) @ back)
    return smoothed[::-1]
