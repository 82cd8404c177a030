"""The contract of poisoning attacks, in which corrupted clients depart from the protocol.

The harness trains the federation, gives the corrupted clients exactly what their knowledge allows, and replaces their
uploads by what they send. The defense never learns who they are.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, final

import torch
from torch import Tensor

from fedarena.contracts.defense import Defense
from fedarena.core.errors import UnusableAnswer, place_of
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, are_tensors, kind_of, shapes_of
from fedarena.core.threat import Knowledge, NotApplicable
from fedarena.problem.task import Batch, Task

PERMUTED = 10_000
"""Pools of more samples than this are not permuted for a draw, because many attackers draw in every round."""


@dataclass(frozen=True)
class Samples:
    """Data at rest.

    Attributes:
        x: inputs as stored [N, *input_shape]. y: classes [N]. scale: the stored value that means 1.0.
    """

    x: Tensor
    y: Tensor
    scale: float

    def inputs(self, index: Tensor) -> Tensor:
        """Inputs in [0, 1]."""
        return self.x[index].float() / self.scale

    def draw(self, n: int, rng: Rng) -> tuple[Tensor, Tensor]:
        """min(n, N) samples without replacement: inputs in [0, 1], classes."""
        if len(self.y) > PERMUTED:
            index = torch.from_numpy(rng.numpy().choice(len(self.y), min(n, len(self.y)), replace=False))
        else:
            index = torch.randperm(len(self.y), generator=rng.torch())[:n]
        index = index.to(self.y.device)
        return self.inputs(index), self.y[index]


@dataclass(frozen=True)
class AttackerKnowledge:
    """What the corrupted clients know before the first round. They collude.

    Attributes:
        task: public facts.
        defense: the rule and the client step, which are public. It holds no data and no state of the server.
        clients: n, all clients. corrupted: f, how many are corrupted.
        data: the corrupted clients' own samples, pooled; without any where they know nothing (`none`).
        knows: `none`, `own` or `omniscient`.
        init: the initial parameters, which every client is sent.
        members: the numbers of the corrupted clients, ascending.
    """

    task: Task
    defense: Defense
    clients: int
    corrupted: int
    data: Samples
    knows: Knowledge
    init: Tensors = field(default_factory=dict)
    members: tuple[int, ...] = ()


@dataclass(frozen=True)
class RoundView:
    """What the corrupted clients that take part in a round see of it, as copies.

    Attributes:
        round: t.
        participants: n_t, uploads that the server will get. size: f_t ≥ 1, those that are the attacker's.
        down: the broadcast.
        own: uploads [f_t, ...] that these clients would send if they followed the protocol on the batches that
            `batches` left them; {} unless the attack `follows` and has data.
        honest: the honest uploads of the round [n_t − f_t, ...]; {} unless the attacker is omniscient.
        honest_clients: whose they are, in their order; () likewise.
        clients: the attacker's own that take part [f_t], in the order of `own` and of what `craft` returns.
        weights: of all uploads in a mean without a rule, which are public: first those of `honest`, then those of
            `own` [n_t]; (): all are equal. Without a server an upload is u_ij = h_i − h_j of a node's neighbourhood
            (`fedarena.contracts.peers`), and the attack is asked for each honest node with corrupted neighbours.
    """

    round: int
    participants: int
    size: int
    down: Tensors
    own: Tensors
    honest: Tensors
    honest_clients: tuple[int, ...] = ()
    clients: tuple[int, ...] = ()
    weights: tuple[float, ...] = ()


class Poisoning(ABC):  # noqa: B024  (an attack overrides `batch`, `craft` or both)
    """Corrupted clients. A subclass writes `batch` (what they train on), `craft` (what they send), or both.

    A complete one:

        class SignFlip(Poisoning):
            def craft(self, view, memory, rng):
                return {name: -t for name, t in view.own.items()}, memory
    """

    knowledge_levels: ClassVar[tuple[Knowledge, ...]] = ("own",)
    """The knowledge that it can be run with; the first is the default."""
    follows: ClassVar[bool] = True
    """Whether `craft` gets the uploads of the protocol, which the harness computes only then."""
    tunes: ClassVar[Mapping[str, tuple[float, ...]]] = {}
    """Option → candidate values, for attacks that can choose their strength on simulated runs."""
    tunes_begin: ClassVar[bool] = False
    """Whether `tunes` contain the time at which it begins."""
    only_length: ClassVar[tuple[str, ...]] = ()
    """The options among `tunes` that change only the length of an upload."""

    def __init__(self, options: Any, knowledge: AttackerKnowledge) -> None:
        self.options = options
        self.knowledge = knowledge

    @classmethod
    def fault(cls) -> str:
        """What is wrong with the class beside its methods' parameters, in messages; empty: nothing."""
        acts = cls.craft is not Poisoning.craft or cls.batch not in (Poisoning.batch, Around.batch)
        return "" if acts else "has no craft and no batch of its own, allowed: at least one of them"

    def applies(self) -> NotApplicable | None:
        """Why the attack cannot start against this defense, if so."""
        return None

    def batch(self, batch: Batch, round: int, client: int, rng: Rng) -> Batch:
        """What one corrupted client, by its number, trains on in place of its batch; by default the batch itself."""
        return batch

    @final
    def poisoned(self, batch: Batch, round: int, client: int, rng: Rng) -> Batch:
        """`batch`. Raises UnusableAnswer, with its place, where it gives none."""
        made: Any = self.batch(batch, round, client, rng)
        if not isinstance(made, Batch):
            raise UnusableAnswer(f"{place_of(type(self).batch)} returned {kind_of(made)}, allowed: a Batch")
        return made

    def craft(self, view: RoundView, memory: Tensors, rng: Rng) -> tuple[Tensors, Tensors]:
        """What the corrupted clients send [f_t, ...] and their memory for the next round ({} at first)."""
        return view.own, memory

    @property
    def place(self) -> str:
        """Where `craft` is written, in messages about what it returned."""
        return place_of(type(self).craft)

    @property
    def strengths(self) -> dict[str, float]:
        """By option, the strength that the attack's own formula gives if the option is none."""
        return {}

    @property
    def untuned(self) -> tuple[str, ...]:
        """The options that it could choose on simulated runs and takes as given."""
        return () if getattr(self.options, "tune", 0) > 1 else tuple(self.tunes)

    @property
    def chooses_when(self) -> bool:
        """Whether it has yet to choose when it begins."""
        return self.tunes_begin and self.options.tune > 1

    @property
    def begins(self) -> int:
        """The first round, counted from 0, in which the attack may do harm. Until then it follows the protocol."""
        return self.begins_after(0)

    def begins_after(self, first: int) -> int:
        """`begins`, where it sees no round before `first`."""
        return first

    @property
    def ends(self) -> int | None:
        """The first round from which on it follows the protocol to the end of the run; None: it does not stop."""
        return None

    def culminates(self, round: int) -> bool:
        """Whether a harmful phase ends with this round. The harness then evaluates the model before it recovers."""
        return False

    def trigger(self, x: Tensor) -> tuple[Tensor, int] | None:
        """For backdoors: inputs [n, ...] in [0, 1] with the trigger, and the class that they are to become."""
        return None

    def meant_for(self, x: Tensor, y: Tensor) -> Tensor:
        """For backdoors: which held-out samples [n] its success is counted on. None of them is of the target's class.

        Args:
            x: inputs [n, ...] in [0, 1] without the trigger. y: their classes [n].
        """
        with_trigger = self.trigger(x)
        return torch.zeros_like(y, dtype=torch.bool) if with_trigger is None else y != with_trigger[1]

    @property
    def sends(self) -> bool:
        """Whether it overrides `craft`."""
        return type(self).craft is not Poisoning.craft


class Around(Poisoning):
    """An attack that wraps another one."""

    keeps_length: ClassVar[bool] = True
    """Whether anything depends on the length of what the attack inside sends."""

    def __init__(self, options: Any, knowledge: AttackerKnowledge, inner: Poisoning) -> None:
        super().__init__(options, knowledge)
        self.inner = inner

    @property
    def untuned(self) -> tuple[str, ...]:
        inside = self.inner.untuned
        if not self.keeps_length:
            inside = tuple(name for name in inside if name not in self.inner.only_length)
        return super().untuned + inside

    @property
    def chooses_when(self) -> bool:
        return super().chooses_when or self.inner.chooses_when

    def begins_after(self, first: int) -> int:
        return self.inner.begins_after(first)

    @property
    def ends(self) -> int | None:
        return self.inner.ends

    @property
    def strengths(self) -> dict[str, float]:
        return self.inner.strengths

    def culminates(self, round: int) -> bool:
        return self.inner.culminates(round)

    def applies(self) -> NotApplicable | None:
        return self.inner.applies()

    def batch(self, batch: Batch, round: int, client: int, rng: Rng) -> Batch:
        return self.inner.poisoned(batch, round, client, rng)

    def trigger(self, x: Tensor) -> tuple[Tensor, int] | None:
        return self.inner.trigger(x)

    def meant_for(self, x: Tensor, y: Tensor) -> Tensor:
        return self.inner.meant_for(x, y)


def as_uploads(
    sent: Any, expected: Mapping[str, list[int]], size: int, place: str, returned: Any = None, beside: str = ""
) -> Tensors:
    """What so many clients send, of the expected shapes. Raises UnusableAnswer for anything else.

    Args:
        place: where it was made. returned: all that was returned there, if that is more. beside: what else it holds.
    """
    if not isinstance(sent, Mapping) or not are_tensors(sent.values()):
        told = kind_of(sent if returned is None else returned)
        raise UnusableAnswer(f"{place} returned {told}, allowed: uploads {dict(expected)}{beside}")
    if (got := shapes_of(sent)) != expected:
        raise UnusableAnswer(f"{place} sent {got}, an upload of {size} clients is {dict(expected)}")
    return dict(sent)
