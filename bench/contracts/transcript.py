"""The rounds that were written down, and what each party saw of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import torch
from torch import Tensor

from fedarena.core.tensors import Tensors, row
from fedarena.core.threat import Threat
from fedarena.problem.task import Batch

T = TypeVar("T")


@dataclass(frozen=True)
class Round:
    """One whole round. Only the harness holds these.

    Attributes:
        index: the round's number t.
        participants: the sampled clients.
        params: the server's parameters W_t at the round's start.
        after: W_{t+1}.
        secret: what the server drew for this round and did not send.
        down: the broadcast.
        ups: uploads, stacked in the order of `participants`.
        batches: the samples behind each upload, in the same order.
        wire: with secure aggregation, what each client sent in place of its upload [participants, d].
        mean: with secure aggregation, the mean that the server learned.
        averaged: the clients whose uploads make up the server's step, where these are not all `participants`: those in
            a secure sum, or the one whose upload a rule picked.
        victim: the client whose upload is attacked; None where none was drawn.
        extra: what the server kept beside its parameters at the round's start.
        memories: what each participant kept of earlier rounds, in the order of `participants`.
        models: without a server, the model that each node began the round with, in the order of `participants`. Then
            `down` is the public model of the first round, and nothing later; `ups` stay with the nodes.
        messages: without a server, what crossed each edge, by sender and receiver.
        coalition: without a server, the curious client and the other neighbours of the victim that collude with it.
        tapped: without a server, the edge that an eavesdropper reads.
        halves: without a server, the nodes' models after their local steps, in the order of `participants`.
        statistics: what clients sent beside their uploads, stacked in the order of `participants`.
    """

    index: int
    participants: tuple[int, ...]
    params: Tensors
    after: Tensors
    secret: Tensors
    down: Tensors
    ups: Tensors
    batches: tuple[Batch, ...]
    wire: Tensor | None = None
    mean: Tensors | None = None
    averaged: tuple[int, ...] = ()
    victim: int | None = None
    extra: Tensors = field(default_factory=dict)
    memories: tuple[Tensors, ...] = ()
    models: Tensors = field(default_factory=dict)
    messages: Mapping[tuple[int, int], Tensors] = field(default_factory=dict)
    coalition: tuple[int, ...] = ()
    tapped: tuple[int, int] | None = None
    halves: Tensors = field(default_factory=dict)
    statistics: Tensors = field(default_factory=dict)

    def model_of(self, client: int) -> Tensors:
        """The model from which a client began: the server's, or without a server its own."""
        return row(self.models, self.participants.index(client)) if self.models else self.params


@dataclass(frozen=True)
class Seen:
    """What one party saw of one round; a field that its visibility excludes is None.

    Attributes:
        index: the round's number.
        participants: the sampled clients (public).
        down: the broadcast.
        ups: every upload, stacked in the order of `participants`. It is None too where uploads are masked.
        params, secret: the server's own. extra: what it kept beside its parameters at the round's start.
        own_up, own_batch: the party's own, when it is a client. own_data: all of its samples, [1, N_c, ...], or those
            that the server holds for the protocol.
        averaged: the clients whose uploads make up the server's step; () is all `participants`. If a rule picked one
            upload, a client can see whether it was its own. If it was another client's, defenses use only how many
            samples that client holds, which is public.
        mean: with secure aggregation, the mean of the uploads of `averaged`. The server and an eavesdropper can compute
            it, since they read all messages.
        wire: with secure aggregation, each message, in the order of `participants`.
        victim: the client whose upload is attacked by a party that sees several; None: the first that is not its own.
        messages: without a server, what the party heard or sent itself, by sender and receiver. `down` is then a
            client's own model, and for an eavesdropper the public one of the first round.
        halves: without a server, what the client and those that collude with it sent, in plain parameters, by node.
        statistics: what all clients sent beside their uploads, for a party that sees `ups`, stacked alike.
    """

    index: int
    participants: tuple[int, ...]
    down: Tensors
    ups: Tensors | None = None
    params: Tensors | None = None
    secret: Tensors | None = None
    extra: Tensors | None = None
    own_up: Tensors | None = None
    own_batch: Batch | None = None
    own_data: Batch | None = None
    mean: Tensors | None = None
    averaged: tuple[int, ...] = ()
    wire: Tensor | None = None
    victim: int | None = None
    messages: Mapping[tuple[int, int], Tensors] = field(default_factory=dict)
    halves: Mapping[int, Tensors] = field(default_factory=dict)
    statistics: Tensors | None = None


def cut(rounds: Sequence[Round], threat: Threat, own_data: Batch | None = None) -> dict[int, Seen]:
    """The rounds that a party saw, by round number, each with the fields that its visibility includes.

    A client sees the rounds in which it was sampled, and no others. A party without the broadcast sees none. Without a
    server, a client sees its coalition's edges, and an eavesdropper the one between the curious client and the victim.

    Args:
        own_data: the samples of client `threat.client`, or of the server.
    """
    visibility = threat.visibility
    return {
        r.index: _seen(r, threat, own_data)
        for r in rounds
        if visibility.down
        and (threat.client in r.participants or not visibility.own)
        and not (visibility.state and r.models)  # there is no server
    }


def _seen(r: Round, threat: Threat, own_data: Batch | None) -> Seen:
    """One of these rounds."""
    sees = threat.visibility
    own = r.participants.index(threat.client) if sees.own else None
    uploads = sees.ups and not r.models
    return Seen(
        index=r.index,
        participants=r.participants,
        down=r.down if own is None or not r.models else row(r.models, own),
        ups=_if(uploads and r.wire is None, r.ups),
        params=_if(sees.state, r.params),
        secret=_if(sees.state, r.secret),
        extra=_if(sees.state, r.extra),
        own_up=None if own is None else row(r.ups, own),
        own_batch=None if own is None else r.batches[own],
        own_data=_if(sees.own or sees.state, own_data),
        mean=_if(uploads, r.mean),
        averaged=r.averaged,
        wire=_if(uploads, r.wire),
        victim=r.victim,
        messages={edge: message for edge, message in r.messages.items() if _sees(threat, r, edge)},
        halves={i: row(r.halves, r.participants.index(i)) for i in r.coalition if sees.own},
        statistics=_if(uploads and r.wire is None and bool(r.statistics), r.statistics),
    )


def _if(seen: bool, what: T) -> T | None:
    return what if seen else None


def _sees(threat: Threat, r: Round, edge: tuple[int, int]) -> bool:
    """Whether a party sees what crosses an edge.

    A client sees all of its own and of those that collude with it, an eavesdropper the one that it taps.
    """
    if threat.visibility.own:
        return not set(edge).isdisjoint(r.coalition)
    return threat.visibility.ups and not threat.visibility.state and edge in (r.tapped, (r.tapped or ())[::-1])


def weights(sizes: Sequence[int], participants: Sequence[int]) -> Tensor:
    """N_c of the participants, as a float tensor (averages divide by their sum)."""
    return torch.tensor([sizes[c] for c in participants], dtype=torch.float32)
