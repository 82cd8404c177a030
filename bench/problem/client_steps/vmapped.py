"""The general form: `torch.func.vmap` of any pure client step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from fedarena.core.tensors import Tensors, row, stack
from fedarena.problem.client_steps.chunk import clients_at_once
from fedarena.problem.task import Batch

ClientStep = Callable[[Tensors, Batch, Tensors, Tensors], tuple[Tensors, Tensors]]
"""(down, batch, memory, noise) → (upload, memory) of one client."""


def run(
    client: ClientStep, down: Tensors, batches: Sequence[Batch], memories: Sequence[Tensors], noises: Sequence[Tensors]
) -> list[tuple[Tensors, Tensors]]:
    """`client` of several clients whose arguments have one shape, a chunk at a time.

    Randomness must come through `noises`: drawing inside `client` is an error, as is a branch on a client's data.
    """
    done: list[tuple[Tensors, Tensors]] = []
    at_once = clients_at_once(down)
    for first in range(0, len(batches), at_once):
        some = slice(first, first + at_once)
        x, y = torch.stack([b.x for b in batches[some]]), torch.stack([b.y for b in batches[some]])
        masks = stack([b.masks for b in batches[some]])
        ups, after = torch.func.vmap(lambda x, y, *rest: client(down, Batch(x, y, rest[0]), *rest[1:]))(
            x, y, masks, stack(memories[some]), stack(noises[some])
        )
        done += [(row(ups, i), row(after, i)) for i in range(x.shape[0])]
    return done


def shape_of(batch: Batch, memory: Tensors, noise: Tensors) -> tuple[object, ...]:
    """Names, shapes and types of all arguments, which must agree for clients that run together."""

    def of(tensors: Mapping[str, Tensor]) -> tuple[tuple[str, torch.Size, torch.dtype], ...]:
        return tuple((name, t.shape, t.dtype) for name, t in tensors.items())

    return (batch.x.shape, batch.y.shape, batch.y.dtype, of(batch.masks), of(memory), of(noise))
