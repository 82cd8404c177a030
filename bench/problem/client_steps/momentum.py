"""The momentum of a FedSGD client over the rounds in which it takes part (Karimireddy, He & Jaggi 2021, Algorithm 2).

    m ← β·m + c·g        sent in place of g; m is 0 before the client's first round

c is 1 (`sum`: PyTorch, and the code of Karimireddy et al. 2022) or 1 − β (`ema`: the 2021 paper, ByzFL). A client that
is not sampled in a round keeps its m as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from fedarena.core.tensors import Tensors
from fedarena.problem.client_steps.onto import Onto
from fedarena.problem.local_training import momentum_step
from fedarena.problem.schedule import Schedule

MOMENTUM = "momentum."
"""Prefix of m in a client's memory."""


def sent_momentum(gradient: Tensors, memory: Tensors, schedule: Schedule) -> tuple[Tensors, Tensors]:
    """One client's m, and its memory for its next round. It is pure, and differentiable in `gradient`.

    Args:
        memory: what the client kept; other entries than m stay as they are.
    """
    m = {name: momentum_step(g, memory.get(MOMENTUM + name), schedule) for name, g in gradient.items()}
    return m, {**memory, **_kept(m)}


def onto_momenta(memories: Sequence[Tensors], like: Tensors, schedule: Schedule) -> Onto:
    """The earlier m of several clients, onto which the fast forms add their gradients.

    Args:
        memories: what each client kept. like: one gradient, by name.
    """
    return Onto(_stacked(memories, like), keeps=schedule.momentum, adds=schedule.fresh_share)


def kept_momenta(momenta: Tensors, memories: Sequence[Tensors], apart: bool) -> list[Tensors]:
    """Each client's memory for its next round.

    Args:
        momenta: the m that are sent, stacked over clients. memories: what each client kept until now.
        apart: whether each memory gets tensors of its own. Else it holds rows of `momenta`, which must then not be
            changed: that takes no time, but one row keeps those of all clients of its round in memory.
    """
    each = zip(*(t.unbind(0) for t in momenta.values()), strict=True)
    names = [MOMENTUM + name for name in momenta]
    kept = []
    for memory, m in zip(memories, each, strict=True):
        own = [t.clone() for t in m] if apart else m
        kept.append({**memory, **dict(zip(names, own, strict=True))})
    return kept


def _stacked(memories: Sequence[Tensors], like: Tensors) -> Tensors | None:
    """All clients' m, stacked, zeros where a client has none yet; None where no client has any."""
    first, names = next(iter(like)), [MOMENTUM + name for name in like]
    rows = [memory.get(MOMENTUM + first) for memory in memories]
    if all(m is None for m in rows):
        return None
    if _all_of_one(rows):  # and so are the other tensors, which `kept_momenta` cut in the same way: no copy is needed
        return {name: memories[0][key]._base for name, key in zip(like, names, strict=True)}  # type: ignore[misc]
    zeros = {MOMENTUM + name: torch.zeros_like(t) for name, t in like.items()}
    return {
        name: torch.stack([memory.get(key, zeros[key]) for memory in memories])
        for name, key in zip(like, names, strict=True)
    }


def _all_of_one(rows: Sequence[Tensor | None]) -> bool:
    """Whether these are the rows of one tensor, all of them, in order."""
    whole = None if rows[0] is None else rows[0]._base
    if whole is None or rows[0] is None or whole.shape != (len(rows), *rows[0].shape):
        return False
    begin, step = whole.storage_offset(), whole.stride(0)
    return all(
        m is not None and m._base is whole and m.storage_offset() == begin + i * step for i, m in enumerate(rows)
    )


def _kept(m: Tensors) -> Tensors:
    return {MOMENTUM + name: t for name, t in m.items()}
