"""The corrupted clients in the rounds: what they are given, and what the server gets from them.

The harness enforces the limits of the threat here. A corrupted client gets copies of what its knowledge allows. What it
sends must have the shape of an upload, and an upload with a value that is not finite counts as zeros.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from fedarena.contracts.defense import Cohort, Defense
from fedarena.contracts.poisoning import AttackerKnowledge, Poisoning, RoundView, Samples, as_uploads
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.core.threat import Knowledge, NotApplicable
from fedarena.problem.problem import Problem
from fedarena.problem.task import Batch


class NoAdversary:
    """The stand-in for an adversary where all clients follow the protocol."""

    corrupted: frozenset[int] = frozenset()
    simulated: bool = False

    def batch(self, client: int, batch: Batch, t: int) -> Batch:
        """The batch as it is."""
        return batch

    def computes(self, client: int) -> bool:
        """Every client computes."""
        return True

    def uploads(self, t: int, cohort: Cohort, down: Tensors, computed: Tensors, receiver: int | None = None) -> Tensors:
        """The uploads as they are."""
        return computed

    def culminates(self, t: int) -> bool:
        """There is no attack that culminates."""
        return False


@dataclass
class Adversary:
    """The corrupted clients of one federation.

    Attributes:
        attack: what they do. corrupted: who they are. rng: their randomness, of a seed of its own.
        simulated: whether an attacker simulates the federation; then a client's memory is not measured.
        memory: what the attack keeps between rounds, for each receiver apart.
    """

    attack: Poisoning
    corrupted: frozenset[int]
    rng: Rng
    simulated: bool = False
    memory: dict[int | None, Tensors] = field(default_factory=dict)

    def batch(self, client: int, batch: Batch, t: int) -> Batch:
        """The batch that a client trains on. An attacker who knows no data is not shown any."""
        if client not in self.corrupted or self.attack.knowledge.knows == "none":
            return batch
        copy, rng = Batch(batch.x.clone(), batch.y.clone()), self.rng.child("batch", t, client)
        return self.attack.poisoned(copy, t, client, rng)

    def computes(self, client: int) -> bool:
        """Whether a client runs the protocol's step at all."""
        return client not in self.corrupted or self.attack.follows or not self.attack.sends

    def culminates(self, t: int) -> bool:
        """Whether a harmful phase of the attack ends with this round."""
        return self.attack.culminates(t)

    def uploads(self, t: int, cohort: Cohort, down: Tensors, computed: Tensors, receiver: int | None = None) -> Tensors:
        """All uploads of the round, in the order of the cohort's clients.

        Integers in an upload say how it is to be read (a seed, a count). They stay as the protocol has them; a client
        that computed nothing takes those of another.

        Args:
            computed: the protocol's uploads, stacked over the clients for which `computes` is true.
            receiver: the node that gets them; None: the server.

        Raises:
            UnusableAnswer: what the attack sends has not the shape of an upload.
        """
        clients, places = cohort.clients, self._places(cohort.clients)
        if not places.corrupted:
            return computed
        if not self.attack.sends:
            return without_infinities(computed, [places.row[i] for i in places.corrupted])
        integers = {name: x for name, x in computed.items() if not x.is_floating_point()}
        floats = {name: x for name, x in computed.items() if x.is_floating_point()}
        view = self._view(t, cohort, down, floats)
        expected = {name: [view.size, *x.shape[1:]] for name, x in floats.items()}
        rng = self.rng.child("craft", t, *(() if receiver is None else (receiver,)))
        sent, self.memory[receiver] = crafted(self.attack, view, self.memory.get(receiver, {}), rng, expected)
        sent = {name: sent[name].to(x) for name, x in floats.items()}  # float64 may be infinite in float32
        sent = without_infinities(sent, range(view.size))
        rows = torch.tensor([places.row.get(i, 0) for i in range(len(clients))])
        uploads = {name: x[rows.to(x.device)] for name, x in (floats | integers).items()}
        for name, x in sent.items():
            uploads[name][places.corrupted] = x
        return uploads

    def _places(self, clients: Sequence[int]) -> _Places:
        computing = [i for i, client in enumerate(clients) if self.computes(client)]
        return _Places(
            honest=[i for i, client in enumerate(clients) if client not in self.corrupted],
            corrupted=[i for i, client in enumerate(clients) if client in self.corrupted],
            row={i: row for row, i in enumerate(computing)},
        )

    def _view(self, t: int, cohort: Cohort, down: Tensors, computed: Tensors) -> RoundView:
        """What the attack's knowledge allows it to see, as copies."""
        clients, weights = cohort.clients, cohort.weights.tolist()
        places, omniscient = self._places(clients), self.attack.knowledge.knows == "omniscient"
        own = [places.row[i] for i in places.corrupted] if self.attack.follows else []
        honest = [places.row[i] for i in places.honest] if omniscient else []
        return RoundView(
            round=t,
            participants=len(clients),
            size=len(places.corrupted),
            down={name: x.clone() for name, x in down.items()},
            own=_rows(computed, own) if self.attack.follows else {},
            honest=_rows(computed, honest) if omniscient else {},
            honest_clients=tuple(clients[i] for i in places.honest) if omniscient else (),
            clients=tuple(clients[i] for i in places.corrupted),
            weights=tuple(weights[i] for i in (*places.honest, *places.corrupted)),
        )


@dataclass(frozen=True)
class _Places:
    """Positions among a round's participants.

    Attributes:
        honest, corrupted: positions of these clients.
        row: position → row in the computed uploads, for clients that compute.
    """

    honest: list[int]
    corrupted: list[int]
    row: dict[int, int]


def why_not(attack: Poisoning, tuned: bool = False) -> NotApplicable | None:
    """Why an attack cannot start; None if it can. `tuned`: whether it has already chosen its open options."""
    if attack.knowledge.knows == "omniscient" and attack.knowledge.defense.secure is not None:
        return NotApplicable("secure aggregation hides the honest uploads: no party sees all of them")
    if attack.knowledge.knows == "none" and attack.follows:
        return NotApplicable(
            "it follows the protocol at times, for which clients without data have nothing to train on"
        )
    if (reason := attack.applies()) is not None:
        return reason
    rounds = attack.knowledge.task.schedule.rounds
    if attack.begins >= rounds and (tuned or not attack.chooses_when):
        return NotApplicable(f"it behaves or watches for {attack.begins} rounds, and the run has {rounds}")
    return None


def require_corrupted(corrupted: int, attack: str) -> None:
    """Raise UserError where no client is corrupted, so that none can carry out a poisoning attack."""
    if not corrupted:
        raise UserError(f"option 'corrupted' is 0, but {attack} needs corrupted clients: at least 1")


def knowledge_of(problem: Problem, defense: Defense, knows: Knowledge) -> AttackerKnowledge:
    """What the corrupted clients of a problem know before the first round."""
    index = torch.cat([problem.shards[c] for c in problem.corrupted])
    if knows == "none":
        index = index[:0]
    data = Samples(problem.x[index], problem.y[index], problem.scale)  # indexing copies
    init = {name: t.clone() for name, t in problem.init.items()}
    return AttackerKnowledge(
        task=problem.task,
        defense=defense,
        clients=len(problem.shards),
        corrupted=len(problem.corrupted),
        data=data,
        knows=knows,
        init=init,
        members=tuple(problem.corrupted),
    )


def _rows(tensors: Tensors, index: list[int]) -> Tensors:
    return {name: t[index] for name, t in tensors.items()}


def crafted(
    attack: Poisoning, view: RoundView, memory: Tensors, rng: Rng, expected: Mapping[str, list[int]]
) -> tuple[Tensors, Tensors]:
    """What the attack crafts, of the expected shapes, and its memory.

    Raises:
        UnusableAnswer: what it crafts is no upload. The message has the attack's place.
    """
    returned: Any = attack.craft(view, memory, rng)
    sent, memory = returned if isinstance(returned, tuple) and len(returned) == 2 else (None, {})
    return as_uploads(sent, expected, view.size, attack.place, returned, " and a memory"), memory


def without_infinities(sent: Tensors, rows: Sequence[int]) -> Tensors:
    """Replace those of the `rows` by zeros that hold a value that is not finite, since any server refuses them."""
    bad = ~torch.stack([_finite_rows(t) for t in sent.values()]).all(0)
    bad &= torch.isin(torch.arange(len(bad), device=bad.device), torch.tensor(list(rows), device=bad.device))
    if not bad.any():
        return sent
    return {
        name: torch.where(bad.view(-1, *[1] * (t.dim() - 1)), 0.0, t) if t.is_floating_point() else t
        for name, t in sent.items()
    }


def _finite_rows(t: Tensor) -> Tensor:
    """Which rows hold finite values alone [n], by their largest and their least value: no copy of t is made."""
    flat = t.flatten(1)
    if not flat.shape[1]:
        return torch.ones(len(flat), dtype=torch.bool, device=t.device)
    return torch.isfinite(flat.amax(1)) & torch.isfinite(flat.amin(1))
