"""A round of secure aggregation, by which the server learns the mean of the uploads alone."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from torch import Tensor

from fedarena.contracts.defense import Cohort
from fedarena.contracts.secure_sum import Exchange, SecureSum
from fedarena.core.errors import UserError, of_type
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, row, rows, shaped
from fedarena.federation.replay import NO_REPLAYS, Replays


@dataclass(frozen=True)
class Summed:
    """A round of secure aggregation.

    Attributes:
        wire: [participants, d], what each participant sent in place of its upload; None: without messages.
        mean: the mean of the survivors' uploads, weighted by N_c; all that the server learns.
        clients: the survivors.
        weight: Σ N_c over them.
        bytes_up, bytes_down: of the whole round, keys, shares and unmasking included, the broadcast not.
    """

    wire: Tensor | None
    mean: Tensors
    clients: tuple[int, ...]
    weight: Tensor
    bytes_up: float
    bytes_down: float

    def received(self) -> tuple[Tensors, Cohort]:
        """The mean as one upload of all survivors together."""
        return {name: t[None] for name, t in self.mean.items()}, Cohort(self.clients, self.weight.reshape(1))


def sum_up(
    secure: SecureSum,
    ups: Tensors,
    cohort: Cohort,
    rng: Rng,
    corrupted: Container[int] = frozenset(),
    messages: bool = True,
    replays: Replays = NO_REPLAYS,
    t: int = 0,
) -> Summed:
    """Play one round: every client multiplies its upload by N_c/N, masks it and sends it.

    A corrupted client sends any values that the encoding can represent: larger values are cut to the limit.

    Args:
        messages: whether they are made; else see `SecureSum.without_messages`.
        replays, t: remembers the call, in round t.

    Raises:
        UserError: uploads with integers in them (a client's own seed), whose sum has no meaning; too few survivors.
    """
    counts = [name for name, t in ups.items() if not t.is_floating_point()]
    if counts:
        raise UserError(f"secure aggregation sums uploads, but '{counts[0]}' in them is no number to be summed")
    share = cohort.weights / cohort.weights.sum()
    vectors = rows(ups).mul_(share[:, None])  # `rows` made a copy
    for i in (i for i, client in enumerate(cohort.clients) if client in corrupted):
        vectors[i].clamp_(-secure.limit, secure.limit)
    what, sum_of = ("sum", secure) if messages else ("sum without messages", secure.without_messages)
    exchange = of_type(Exchange, replays.call(t, what, sum_of, vectors, rng), "secure", type(secure).__call__)
    survivors = list(exchange.survivors)
    n = len(cohort.clients)
    return Summed(
        wire=exchange.wire,
        mean=shaped((exchange.total / share[survivors].sum()).to(vectors), row(ups, 0)),
        clients=tuple(cohort.clients[i] for i in survivors),
        weight=cohort.weights[survivors].sum(),
        bytes_up=_size(exchange.wire) + n * exchange.extra_up,
        bytes_down=n * exchange.extra_down,
    )


def _size(wire: Tensor | None) -> int:
    """Bytes of the masked vectors; a client that dropped out before it sent one left zeros."""
    return 0 if wire is None else int((wire != 0).any(1).sum()) * wire.shape[1] * wire.element_size()
