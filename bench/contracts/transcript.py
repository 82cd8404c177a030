"""The rounds that were written down, and what each party saw of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from fedarena.core.tensors import Tensors, row
from fedarena.core.threat import Threat
from fedarena.problem.task import Batch


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


def cut(rounds: Sequence[Round], threat: Threat, own_data: Batch | None = None) -> dict[int, Seen]:
    """The rounds that a party saw, by round number, each with the fields that its visibility includes.

    A client sees the rounds in which it was sampled, and no others. A party without the broadcast sees none.

    Args:
        own_data: the samples of client `threat.client`, or of the server.
    """
    visibility = threat.visibility
    seen: dict[int, Seen] = {}
    for r in rounds:
        own = r.participants.index(threat.client) if threat.client in r.participants else None
        if not visibility.down or (visibility.own and own is None):
            continue
        seen[r.index] = Seen(
            index=r.index,
            participants=r.participants,
            down=r.down,
            ups=r.ups if visibility.ups and r.wire is None else None,
            params=r.params if visibility.state else None,
            secret=r.secret if visibility.state else None,
            extra=r.extra if visibility.state else None,
            own_up=row(r.ups, own) if visibility.own and own is not None else None,
            own_batch=r.batches[own] if visibility.own and own is not None else None,
            own_data=own_data if visibility.own or visibility.state else None,
            mean=r.mean if visibility.ups else None,
            averaged=r.averaged,
            wire=r.wire if visibility.ups else None,
            victim=r.victim,
        )
    return seen


def weights(sizes: Sequence[int], participants: Sequence[int]) -> Tensor:
    """N_c of the participants, as a float tensor (averages divide by their sum)."""
    return torch.tensor([sizes[c] for c in participants], dtype=torch.float32)
