"""What a client's memory holds before a round, as far as nobody's samples decide it.

A memory may hold numbers that anybody can compute, such as the number of the round. A party that knows the protocol
plays it twice on samples that are nobody's, each time with others. What both clients remember alike is public:

    m_0 = {},   m_{t+1} = the memory that `client` returns for m_t

The rest depends on the samples of earlier rounds. If nothing is public, the party plays a client without a memory. Else
it plays one with a player's memory, which is one that a client can have.
"""

from __future__ import annotations

from functools import lru_cache

import torch

from fedarena.contracts.defense import Defense
from fedarena.contracts.transcript import Seen
from fedarena.core.tensors import Tensors
from fedarena.problem.task import Batch

PLAYERS = (0, 1)
"""The seeds of the samples that are nobody's."""


def public_memory(defense: Defense, now: Seen, client: int) -> Tensors:
    """The memory of a client before a round, by name; {} where nothing of it is public.

    If only some clients take part in a round, a party need not know in how many rounds one did. It then takes {}.
    """
    task = defense.task
    if task.participants < len(task.sizes):
        return {}
    played = _played(defense, task.schedule.taken(task.sizes[client]))
    while len(played) <= now.index and (len(played) == 1 or any(_alike(name, played[-1]) for name in played[-1][0])):
        t = len(played) - 1
        batches = [_nobodys(defense, now.down, client, torch.Generator().manual_seed(2 * t + k)) for k in PLAYERS]
        played.append([defense.client(now.down, b, m, {})[1] for b, m in zip(batches, played[-1], strict=True)])
    memories = played[now.index] if now.index < len(played) else played[0]
    return memories[0] if any(_alike(name, memories) for name in memories[0]) else {}


@lru_cache(maxsize=16)
def _played(defense: Defense, samples: int) -> list[list[Tensors]]:
    """The memories of the players before each round that was played so far, of clients with so many samples."""
    return [[{} for _ in PLAYERS]]


def _alike(name: str, memories: list[Tensors]) -> bool:
    first, second = memories
    return name in second and torch.equal(first[name], second[name])


def _nobodys(defense: Defense, down: Tensors, client: int, generator: torch.Generator) -> Batch:
    """Local work of a client on noise."""
    task = defense.task
    like = next((t for t in down.values() if t.is_floating_point()), torch.zeros(()))
    steps, b = max(1, task.schedule.taken(task.sizes[client]) // task.schedule.batch_size), task.schedule.batch_size
    steps *= max(1, task.schedule.local_epochs)
    x = torch.rand(steps, b, *task.input_shape, generator=generator).to(like)
    if not task.n_classes:
        return Batch(x, torch.rand(steps, b, generator=generator).to(like))
    return Batch(x, torch.randint(task.n_classes, (steps, b), generator=generator).to(x.device))
