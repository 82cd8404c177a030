"""The momentum of a FedSGD client over the rounds in which it takes part (Karimireddy, He & Jaggi 2021, Algorithm 2).

    m ← β·m + c·g        sent in place of g; m is 0 before the client's first round

c is 1 (`sum`: PyTorch, and the code of Karimireddy et al. 2022) or 1 − β (`ema`: the 2021 paper, ByzFL). A client that
is not sampled in a round keeps its m as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from fedarena.core.tensors import Tensors, row
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


def sent_momenta(
    gradients: Tensors, memories: Sequence[Tensors], schedule: Schedule, apart: bool
) -> tuple[Tensors, list[Tensors]]:
    """`sent_momentum` of several clients, in place of their stacked gradients.

    Args:
        gradients: [clients, ...], overwritten by the m that are returned.
        memories: what each client kept.
        apart: whether each memory gets tensors of its own. Else it holds rows of what is returned, which must then
            not be changed: that takes no time, but one row keeps those of all clients of its round in memory.
    """
    rows = [row(gradients, i) for i in range(len(memories))]
    before = [(m, g) for kept, own in zip(memories, rows, strict=True) for m, g in _pairs(kept, own)]
    if schedule.momentum_form == "ema":
        torch._foreach_mul_(list(gradients.values()), schedule.fresh_share)
    if before:
        torch._foreach_add_([g for _, g in before], [m for m, _ in before], alpha=schedule.momentum)
    if apart:
        rows = [{name: t.clone() for name, t in m.items()} for m in rows]
    return gradients, [{**kept, **_kept(m)} for kept, m in zip(memories, rows, strict=True)]


def _pairs(memory: Tensors, gradient: Tensors) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """(m, g) of the tensors of which a client has an m."""
    return [(memory[MOMENTUM + name], g) for name, g in gradient.items() if MOMENTUM + name in memory]


def _kept(m: Tensors) -> Tensors:
    return {MOMENTUM + name: t for name, t in m.items()}
