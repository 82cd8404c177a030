"""Protocols without a server: every node of a graph keeps a model, and mixes it with those of its neighbours.

A round, for every node i with its neighbours N_i (Lian et al. 2017; He, Karimireddy and Jaggi 2022):

    h_i = W_i − η·up_i             the local step: `client` at the node's own model
    i → j: message(h_i)            to every neighbour; the plain message is h_i itself
    W_i ← h_i − combine_j(u_ij)    u_ij = h_i − h_j over the neighbourhood, with u_ii = 0

So every node is the server of its neighbourhood, whose clients send u_ij. Without a rule `combine` is the mean by
Metropolis weights, W_i ← Σ_j w_ij h_j. With one, such as the median, it is robust mixing: what is said of a rule before
a server holds for a node.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from fedarena.contracts.aggregator import Aggregator
from fedarena.contracts.defense import Broadcast, Cohort, Defense, Direction, State
from fedarena.contracts.final_model import FinalModel
from fedarena.contracts.observation import Disclosure
from fedarena.contracts.transcript import Seen
from fedarena.core.errors import UserError
from fedarena.core.graph import GraphOptions, make_graph
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, combine, row, stack
from fedarena.core.threat import CURIOUS, NotApplicable, Threat
from fedarena.problem.task import Batch, Task

NODE, MEMORY = "node/", "memory/"
"""What the names of the nodes' parameters, and of what their rules remember, begin with in `State.extra`."""

NO_SERVER = NotApplicable("the protocol has no server: nodes talk to their neighbours alone")
NOTHING_FINISHED = NotApplicable(
    "no finished model crosses the edge: what nodes send in the last round, they still mix; attacks that read uploads "
    "read it"
)


class Peers(Defense):
    """A protocol without a server; see the module's docstring. `client` gets a node's own model as its broadcast.

    The state's parameters are the mean of the honest nodes' models, which nobody holds. All nodes begin with one model,
    which is public, and take part in every round.
    """

    options: GraphOptions
    sums = False
    statistics = Defense.statistics

    def __init__(self, options: Any, task: Task, rule: Aggregator | None = None) -> None:
        super().__init__(options, task, rule)
        schedule = task.schedule
        if task.participants < len(task.sizes):
            raise UserError(
                f"option 'participation' is {schedule.participation:g}, allowed without a server: 1 (every node takes "
                "part in every round)"
            )
        if schedule.server_optimizer != "sgd":
            raise UserError(f"option 'server_optimizer' is {schedule.server_optimizer}, allowed without a server: sgd")
        self.graph = make_graph(options, len(task.sizes))
        self._require_colluders()
        if rule is not None:
            self._require_neighbourhoods(rule)

    def _require_colluders(self) -> None:
        """Raise UserError where a node that may be the victim has fewer neighbours to collude."""
        neighbours = self.graph.neighbours
        most = min(len(neighbours[victim]) - 1 for victim in neighbours[CURIOUS])
        if self.options.colluders > most:
            raise UserError(
                f"option 'colluders' is {self.options.colluders}, allowed in this graph: at most {most} (other "
                "neighbours of a victim)"
            )

    def _require_neighbourhoods(self, rule: Aggregator) -> None:
        """Raise UserError where the rule is not defined for a neighbourhood of this graph."""
        for size in {len(weights) for weights in self.graph.mixing}:
            try:
                rule.check(size, self.assumed(size))
            except UserError as error:
                raise UserError(
                    f"{error} (of a node's neighbourhood; see options graph and degree, and --assumed-corrupted)"
                ) from None

    def assumed(self, uploads: int) -> int:
        """f, how many of a neighbourhood a node assumes to be corrupted: as many as of all, at most a minority."""
        return min(self.task.assumed_corrupted, (uploads - 1) // 2)

    def takes_mean_of(self, node: int) -> int:
        """Of how many messages a node takes the mean, its own among them; 0: it weighs all."""
        size = len(self.graph.mixing[node])
        return 0 if self.rule is None else self.rule.takes_mean_of(size, self.assumed(size))

    # -- the nodes ---------------------------------------------------------------------------------

    def init(self, params: Tensors, rng: Rng, auxiliary: Batch | None = None) -> State:
        nodes = {NODE + name: p.expand(self.graph.nodes, *p.shape).clone() for name, p in params.items()}
        return State(params=params, extra=nodes)

    def models(self, state: State) -> Tensors:
        """W_i of all nodes, stacked."""
        return {name.removeprefix(NODE): t for name, t in state.extra.items() if name.startswith(NODE)}

    def half(self, models: Tensors, ups: Tensors, out: Tensors | None = None) -> Tensors:
        """h = W − η·up of nodes, stacked; with FedSGD and weight decay λ it is W − η·(up + λ·W).

        Args:
            out: where h is written, which may be `ups`; None: into new tensors.
        """
        keeps = 1 - self.step_size * self.task.schedule.server_decay
        whole = models if keeps == 1 else {name: keeps * w for name, w in models.items()}
        step = -self.step_size
        return {
            name: torch.add(w, ups[name], alpha=step, out=None if out is None else out[name])
            for name, w in whole.items()
        }

    def release(self, state: State, rng: Rng) -> Tensors:
        """The curious node's own model: nobody is given another one."""
        return row(self.models(state), CURIOUS)

    def in_use(self, state: State, corrupted: Collection[int] = ()) -> list[Tensors]:
        models = self.models(state)
        return [row(models, i) for i in range(self.graph.nodes) if i not in corrupted]

    def memory(self, state: State, node: int) -> Tensors:
        """What one node's rule remembers."""
        own = f"{MEMORY}{node}/"
        return {name.removeprefix(own): t for name, t in state.extra.items() if name.startswith(own)}

    def after(self, state: State, models: Tensors, memories: Sequence[Tensors], honest: Sequence[int]) -> State:
        """The state after a round, from all nodes' models and what their rules remember."""
        extra = {NODE + name: t for name, t in models.items()}
        for node, memory in enumerate(memories):  # apart: what a rule remembers depends on whom its node hears
            extra |= {f"{MEMORY}{node}/{name}": t for name, t in memory.items()}
        mean = {name: t[list(honest)].mean(0) if len(honest) < len(t) else t.mean(0) for name, t in models.items()}
        return State(params=mean, round=state.round + 1, extra=extra, steps=state.steps + 1)

    def local(
        self, models: Tensors, batches: Sequence[Batch], memories: Sequence[Tensors], noises: Sequence[Tensors]
    ) -> tuple[Tensors, list[Tensors]]:
        """`client` of every node at its own model: the uploads, stacked, and the nodes' memories."""
        work = enumerate(zip(batches, memories, noises, strict=True))
        done = [self.checked_client(row(models, i), *one) for i, one in work]
        return stack([up for up, _ in done]), [memory for _, memory in done]

    def local_halves(
        self, models: Tensors, batches: Sequence[Batch], memories: Sequence[Tensors], noises: Sequence[Tensors]
    ) -> tuple[Tensors, list[Tensors]]:
        """`half` of `local`'s uploads, to the bit, and the nodes' memories, where nobody keeps the uploads."""
        ups, after = self.local(models, batches, memories, noises)
        return self.half(models, ups, out=ups), after

    # -- edges ----------------------------------------------------------------------------------------

    @property
    def plain(self) -> bool:
        """Whether a round without corrupted nodes is W ← (w_ij) H, so that one product does it."""
        return self.rule is None

    def message(self, half: Tensors, secret: int) -> Tensors:
        """What crosses an edge of a node's h; here h itself.

        Args:
            secret: a number that the two ends of the edge agreed on for this round.
        """
        return half

    def difference(self, half: Tensors, message: Tensors, secret: int) -> Tensors:
        """u_ij, from a node's own h_i and a neighbour's message."""
        return combine(1.0, half, -1.0, message)

    def mix(
        self, half: Tensors, differences: Tensors, cohort: Cohort, memory: Tensors, rng: Rng
    ) -> tuple[Tensors, Tensors]:
        """A node's model after the round, W_i = h_i − combine(u_ij), and what its rule remembers.

        Args:
            half: h_i. differences: u_ij, stacked over the neighbourhood in the order of `cohort`, whose weights are
                w_ij. memory: what the rule remembered.
        """
        made = self.direction(State(params=half, extra=memory), Broadcast({}), differences, cohort, rng)
        return combine(1.0, half, -1.0, made.step), made.extra

    def cohort(self, node: int, like: Tensor) -> Cohort:
        """A node's neighbourhood, with the weights by which it mixes."""
        weights = self.graph.mixing[node]
        return Cohort(tuple(weights), like.new_tensor(list(weights.values())))

    # -- the contract of a protocol with a server ------------------------------------------------------

    def broadcast(self, state: State, rng: Rng) -> Broadcast:
        """The model that a node works at; nobody sends it."""
        return Broadcast(dict(state.params))

    def direction(self, state: State, sent: Broadcast, ups: Tensors, cohort: Cohort, rng: Rng) -> Direction:
        return self.combine(state, sent, ups, cohort, rng)

    # -- what parties observe ----------------------------------------------------------------------------

    def disclosure(self, threat: Threat, now: Seen) -> Disclosure | NotApplicable:
        return NO_SERVER

    def final_model(self, threat: Threat) -> FinalModel | NotApplicable:
        if threat.party == "client":
            return "own model"
        return NOTHING_FINISHED if threat.party == "eavesdropper" else NO_SERVER


def mixed_plainly(defense: Peers, halves: Tensors) -> Tensors:
    """Σ_j w_ij h_j of every node at once."""
    mixing, like = defense.graph.mixing, next(iter(halves.values()))
    weights = like.new_tensor([w for one in mixing for w in one.values()])
    heard = torch.tensor([j for one in mixing for j in one], device=like.device)
    begins = torch.tensor([0, *(len(one) for one in mixing[:-1])], device=like.device).cumsum(0)

    def mixed(h: Tensor) -> Tensor:
        return embedding_bag(heard, h.flatten(1), begins, mode="sum", per_sample_weights=weights).view_as(h)

    return {name: mixed(h) for name, h in halves.items()}
