"""What a client's memory holds before a round, as far as nobody's samples decide it.

A memory may hold numbers that anybody can compute, such as the number of the round. A party that knows the protocol
plays it twice on samples that are nobody's, each time with others and with another model. What both clients remember
alike is public:

    m_0 = {},   m_{t+1} = the memory that `client` returns for m_t

The rest depends on the samples or the broadcasts of earlier rounds. If nothing is public, the party plays a client
without a memory. Else it plays one with a player's memory, which is one that a client can have.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch

from fedarena.contracts.defense import Defense
from fedarena.contracts.transcript import Seen
from fedarena.core.tensors import Tensors
from fedarena.problem.task import Batch

PLAYERS = (0, 1)
"""The clients that are played."""


def public_memory(defense: Defense, now: Seen, client: int) -> Tensors:
    """The memory of a client before a round, by name; {} where nothing of it is public.

    If only some clients take part in a round, a party need not know in how many rounds one did. It then takes {}.
    """
    task = defense.task
    if task.participants < len(task.sizes):
        return {}
    played = _played(defense, task.schedule.taken(task.sizes[client]))
    if now.index and not played.anything:
        return {}
    t = min(now.index, len(played.before) - 1)
    memories = [played.before[t] for _ in PLAYERS]
    while t < now.index:
        first = _remembered(defense, now.down, client, memories[0], t, PLAYERS[0])
        memories = [first, first and _remembered(defense, now.down, client, memories[1], t, PLAYERS[1])]
        t += 1
        alike = [name for name in first if _alike(name, memories)]
        if not alike:
            played.anything = t > 1
            return {}
        if len(alike) == len(memories[0]) and t == len(played.before):
            played.before.append(memories[0])
    return memories[0]


@dataclass
class _Played:
    """What is known of the memories of clients with so many samples. It depends on neither samples nor broadcasts, so
    that it does not matter which round was asked about first.

    Attributes:
        before: the memories before each round that were played so far, if all of them is public.
        anything: whether anything may be public after the first round. If not, nothing is after any.
    """

    before: list[Tensors]
    anything: bool = True


@lru_cache(maxsize=16)
def _played(defense: Defense, samples: int) -> _Played:
    return _Played([{}])


def _remembered(defense: Defense, down: Tensors, client: int, memory: Tensors, t: int, player: int) -> Tensors:
    """A player's memory after round t, in which each player gets another model."""
    generator = torch.Generator().manual_seed(len(PLAYERS) * t + player)
    down = {name: (1 + 0.1 * player) * x if x.is_floating_point() else x for name, x in down.items()}
    return defense.client(down, _nobodys(defense, down, client, generator), memory, {})[1]


def _alike(name: str, memories: list[Tensors]) -> bool:
    first, second = memories
    return name in second and torch.equal(first[name], second[name])


def _nobodys(defense: Defense, down: Tensors, client: int, generator: torch.Generator) -> Batch:
    """Local work of a client on noise."""
    task = defense.task
    like = next((t for t in down.values() if t.is_floating_point()), torch.zeros(()))
    steps, b = task.schedule.steps(task.sizes[client]), task.schedule.batch_size
    x = torch.rand(steps, b, *task.input_shape, generator=generator).to(like)
    if not task.n_classes:
        return Batch(x, torch.rand(steps, b, generator=generator).to(like))
    return Batch(x, torch.randint(task.n_classes, (steps, b), generator=generator).to(x.device))
