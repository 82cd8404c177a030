"""Functions from which defenses build their readings: simulators, and the choice of victims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

import torch
from torch import Tensor

from fedarena.contracts.defense import Defense
from fedarena.contracts.public_memory import public_memory
from fedarena.contracts.transcript import Seen
from fedarena.core.gradients import gradient
from fedarena.core.tensors import Tensors, combine, row, stack, weighted_mean
from fedarena.core.threat import NotApplicable, Threat
from fedarena.problem.local_training import upload
from fedarena.problem.task import Batch, Task


@dataclass(frozen=True)
class PlainGradient:
    """Simulator of the paper form: the gradient that a candidate batch gives in the plain model.

    Several clients' losses are averaged by N_c, as the server averages their uploads.

    Attributes:
        task: public facts.
        params: the parameters that the party knows or estimates.
        clients: whose samples the candidates stand for.
    """

    task: Task
    params: Tensors
    clients: tuple[int, ...]

    def __call__(self, x: Tensor, y: Tensor) -> Tensors:
        return gradient(self.loss, self.params, x, y)

    def loss(self, params: Tensors, x: Tensor, y: Tensor) -> Tensor:
        """The clients' mean loss at any parameters."""
        total = sum(self.task.sizes[c] for c in self.clients)
        counts = [images_behind(self.task, c) for c in self.clients]
        parts = zip(self.clients, x.split(counts), y.split(counts), strict=True)
        losses = [self.task.sizes[c] / total * self.task.loss(params, xc, yc) for c, xc, yc in parts]
        return torch.stack(losses).sum()


@dataclass(frozen=True)
class LocalUpdate:
    """Simulator: start − end of the local steps that a candidate batch gives, in its order in every epoch."""

    task: Task
    params: Tensors

    def __call__(self, x: Tensor, y: Tensor) -> Tensors:
        return upload(self.task.loss, self.params, as_batch(self.task, x, y), self.task.schedule)


@dataclass(frozen=True)
class WithOwn:
    """Simulator: the mean gradient of all clients when the others hold a candidate batch and the party its own.

    Attributes:
        others: the others' plain gradient. own: the party's, at the same parameters. share: its part N_a/N of the mean.
    """

    others: PlainGradient
    own: Tensors
    share: float

    def __call__(self, x: Tensor, y: Tensor) -> Tensors:
        return combine(1 - self.share, self.others(x, y), self.share, self.own)


@dataclass(frozen=True)
class ThroughProtocol:
    """Simulator of the adaptive form: the upload that a candidate batch gives through the client step.

    Several clients' uploads are averaged by their weights in the server's mean. With several local epochs the
    candidate is replayed in one order, since the clients' shuffles are unknown.

    Attributes:
        defense: the protocol (its options and the public facts).
        down: the broadcast that the party saw.
        clients: whose upload it is.
        memory: what each client remembers of earlier rounds, as far as the party can tell.
    """

    defense: Defense
    down: Tensors
    clients: tuple[int, ...]
    memory: Tensors = field(default_factory=dict)

    @classmethod
    def of(cls, defense: Defense, now: Seen, clients: tuple[int, ...]) -> Self:
        """The simulator of a round that a party saw, with what is public of the clients' memory."""
        return cls(defense, now.down, clients, public_memory(defense, now, clients[0]))

    def __call__(self, x: Tensor, y: Tensor) -> Tensors:
        task = self.defense.task
        counts = [images_behind(task, c) for c in self.clients]
        ups = [
            self.defense.client(self.down, as_batch(task, xc, yc), self.memory, {})[0]
            for xc, yc in zip(x.split(counts), y.split(counts), strict=True)
        ]
        if len(ups) == 1:
            return ups[0]
        weights = self.defense.mean_weights
        return weighted_mean(stack(ups), x.new_tensor([weights[c] for c in self.clients]))


def images_behind(task: Task, client: int) -> int:
    """How many samples one epoch of a client's local work (FedSGD: its one batch) takes."""
    return task.schedule.taken(task.sizes[client])


def as_batch(task: Task, x: Tensor, y: Tensor) -> Batch:
    """Samples [n, ...] → the local work that visits them in this order in every local epoch."""
    schedule = task.schedule
    steps, epochs = x.shape[0] // schedule.batch_size, max(1, schedule.local_epochs)

    def shape(t: Tensor) -> Tensor:
        once = t.reshape(steps, schedule.batch_size, *t.shape[1:])
        return torch.cat([once] * epochs)

    return Batch(shape(x), shape(y))


def victim(seen: Seen, threat: Threat) -> int:
    """The client whose upload server and eavesdropper attack: the one that was drawn, else the first one that is not
    `threat.client`.

    The same client is among a malicious client's victims, so that parties are compared on the same data.
    Where only `threat.client` took part, it is the victim.
    """
    if seen.victim is not None:
        return seen.victim
    return next((c for c in seen.participants if c != threat.client), seen.participants[0])


def upload_of(seen: Seen, client: int) -> Tensors:
    """One client's upload, for a party that sees uploads."""
    assert seen.ups is not None
    return row(seen.ups, seen.participants.index(client))


def uploads_seen(seen: Seen, threat: Threat) -> tuple[tuple[int, ...], Tensors]:
    """The upload that a party attacks if it reads uploads: one client's, or the mean of a secure sum.

    Returns:
        The clients that the upload belongs to, and the upload.
    """
    if seen.mean is not None:
        return seen.averaged, seen.mean
    one = victim(seen, threat)
    return (one,), upload_of(seen, one)


def others_of(seen: Seen, threat: Threat) -> tuple[int, ...]:
    """The clients whose uploads were averaged, without the malicious client."""
    return tuple(c for c in seen.averaged or seen.participants if c != threat.client)


def why_no_difference(task: Task) -> str:
    """Why a client learns no other client's upload: it needs two consecutive broadcasts and another upload between."""
    if len(task.sizes) == 1:
        return "the malicious client is the only one: there is no other client's upload to be learned"
    return "the malicious client was not sampled in two consecutive rounds in which another client's upload counted"


def own_share(sizes: Sequence[int], seen: Seen, threat: Threat) -> float:
    """N_a/N of the malicious client in the mean; 0 where it dropped out of a secure sum, or a rule picked another."""
    averaged = seen.averaged or seen.participants
    return sizes[threat.client] / sum(sizes[c] for c in averaged) if threat.client in averaged else 0.0


def without_own(total: Tensors, own: Tensors, sizes: Sequence[int], seen: Seen, threat: Threat) -> Tensors:
    """The others' weighted mean upload, from the mean of all and one's own: (N·total − N_a·own)/(N − N_a).

    This is DBCL's Eq. (1) for unequal weights. N sums over the clients whose uploads were averaged.
    """
    if not own_share(sizes, seen, threat):
        return total
    n, mine = sum(sizes[c] for c in seen.averaged or seen.participants), sizes[threat.client]
    return combine(n / (n - mine), total, -mine / (n - mine), own)


def client_rounds(
    defense: Defense,
    threat: Threat,
    seen: Mapping[int, Seen],
    victims: Sequence[int],
    hidden: str = "the clients' mean upload",
) -> list[int] | NotApplicable:
    """The rounds of `victims` in which the server's step shows the client what the others sent.

    The step W_t − W_{t+1} must be a multiple of the mean upload, the client must have seen both broadcasts, and
    another client's upload must be in the mean.

    Args:
        defense: the protocol.
        threat: the client.
        seen: the rounds that it saw.
        victims: the rounds that are attacked.
        hidden: what Adam's steps do not show; a part of the returned reason.

    Returns:
        At least one round, or why there is none.
    """
    if defense.task.schedule.server_optimizer != "sgd":
        return NotApplicable(f"the server's Adam steps do not show {hidden}, and this attack does not invert Adam")
    if why := defense.why_not_mean():
        return NotApplicable(why)
    return consecutive_rounds(defense, threat, seen, victims)


def hidden_decay(defense: Defense) -> NotApplicable | None:
    """Why a party that does not know W cannot take the weight decay out of the server's step; None without any."""
    if not defense.task.schedule.server_decay:
        return None
    return NotApplicable(
        "the server's steps hold weight decay λ·W, W is hidden, and this attack does not take it out: that is its "
        "limit, and no strength of the protocol"
    )


def consecutive_rounds(
    defense: Defense, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
) -> list[int] | NotApplicable:
    """The rounds of `victims` in which another client's upload counted, and of which the client saw both broadcasts."""
    rounds = [t for t in victims if t in seen and t + 1 in seen and others_of(seen[t], threat)]
    return rounds or NotApplicable(why_no_difference(defense.task))
