"""The corrupted clients at work: what they are handed, and what of theirs reaches the server.

The harness re-imposes the threat's limits here: a corrupted client gets copies of what its knowledge allows,
what it sends must have the shape of an upload, and counts as zeros where it is not finite.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from fedarena.contracts.defense import Defense
from fedarena.contracts.poisoning import AttackerKnowledge, Poisoning, RoundView, Samples
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.core.threat import Knowledge, NotApplicable
from fedarena.problem.batch import Batch
from fedarena.problem.problem import Problem


@dataclass
class Adversary:
    """The corrupted clients of one federation.

    Attributes:
        attack: what they do. corrupted: who they are. rng: their randomness, of a seed of its own.
        memory: what the attack keeps between rounds.
    """

    attack: Poisoning
    corrupted: frozenset[int]
    rng: Rng
    memory: Tensors = field(default_factory=dict)

    def batch(self, client: int, batch: Batch, t: int) -> Batch:
        """What a client trains on."""
        if client not in self.corrupted:
            return batch
        return self.attack.batch(Batch(batch.x.clone(), batch.y.clone()), t, self.rng.child("batch", t, client))

    def computes(self, client: int) -> bool:
        """Whether a client runs the protocol's step at all."""
        return client not in self.corrupted or self.attack.follows or not self.attack.sends

    def uploads(self, t: int, clients: Sequence[int], down: Tensors, computed: Tensors) -> Tensors:
        """All uploads of the round, in the order of `clients`.

        Args:
            computed: the protocol's uploads, stacked over the clients that `computes` says.

        Raises:
            ValueError: an attack that sends what is no upload.
        """
        bad = [i for i, c in enumerate(clients) if c in self.corrupted]
        if not bad or not self.attack.sends:
            return computed
        whole = {name: t for name, t in computed.items() if not t.is_floating_point()}
        computed = {name: t for name, t in computed.items() if t.is_floating_point()}
        good = [i for i, c in enumerate(clients) if c not in self.corrupted]
        place = {i: row for row, i in enumerate(i for i, c in enumerate(clients) if self.computes(c))}
        own = _rows(computed, [place[i] for i in bad]) if self.attack.follows else {}
        honest = _rows(computed, [place[i] for i in good])
        knows = self.attack.knowledge.knows == "omniscient"
        visibility = RoundView(
            round=t,
            participants=len(clients),
            size=len(bad),
            down={name: x.clone() for name, x in down.items()},
            own=own,
            honest={name: x.clone() for name, x in honest.items()} if knows else {},
            honest_clients=tuple(clients[i] for i in good) if knows else (),
            clients=tuple(clients[i] for i in bad),
        )
        sent, self.memory = self.attack.craft(visibility, self.memory, self.rng.child("craft", t))
        _check(sent, honest, len(bad))
        sent = refused(sent)
        order = torch.argsort(torch.tensor([*good, *bad]))
        done = {name: torch.cat([x, sent[name].to(x)])[order.to(x.device)] for name, x in honest.items()}
        # Integers say how an upload is to be read (a seed, a count), and stay as the protocol has them; a client that
        # computed nothing takes another one's.
        rows_of = torch.tensor([place.get(i, 0) for i in range(len(clients))])
        return done | {name: t[rows_of.to(t.device)] for name, t in whole.items()}


def why_not(attack: Poisoning, tuned: bool = False) -> NotApplicable | None:
    """Why an attack cannot start on its ground, if so; `tuned` once it has chosen what its options leave to it."""
    if attack.knowledge.knows == "omniscient" and attack.knowledge.defense.secure is not None:
        return NotApplicable("secure aggregation hides the honest uploads from everybody: nobody knows all of them")
    if (reason := attack.applies()) is not None:
        return reason
    rounds = attack.knowledge.task.schedule.rounds
    if attack.begins >= rounds and (tuned or not attack.chooses_when):
        return NotApplicable(f"it behaves or watches for {attack.begins} rounds, and the run has {rounds}")
    return None


def require_corrupted(corrupted: int, attack: str) -> None:
    """Raise UserError when there is nobody to carry out a poisoning attack."""
    if not corrupted:
        raise UserError(f"option 'corrupted' is 0, but {attack} needs corrupted clients: at least 1")


def knowledge_of(problem: Problem, defense: Defense, knows: Knowledge) -> AttackerKnowledge:
    """What the corrupted clients of a problem know before the first round."""
    index = torch.cat([problem.shards[c] for c in problem.corrupted])
    data = Samples(problem.x[index].clone(), problem.y[index].clone(), problem.scale)
    init = {name: t.clone() for name, t in problem.init.items()}
    return AttackerKnowledge(problem.task, defense, len(problem.shards), len(problem.corrupted), data, knows, init)


def _rows(tensors: Tensors, index: list[int]) -> Tensors:
    return {name: t[index] for name, t in tensors.items()}


def _check(sent: Tensors, honest: Tensors, size: int) -> None:
    expected = {name: (size, *t.shape[1:]) for name, t in honest.items()}
    got = {name: tuple(t.shape) for name, t in sent.items()}
    if got != expected:
        raise ValueError(f"the attack sent {got}, an upload of {size} clients is {expected}")


def refused(sent: Tensors) -> Tensors:
    """Uploads with a value that is not finite become zeros: any server refuses them."""
    good = torch.stack([torch.isfinite(t).flatten(1).all(1) for t in sent.values()]).all(0)
    return {name: torch.where(good.view(-1, *[1] * (t.dim() - 1)), t, 0.0) for name, t in sent.items()}
