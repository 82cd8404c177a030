"""Which form computes the clients' uploads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from torch import Tensor

from fedarena.batch import Batch
from fedarena.local import Loss, upload
from fedarena.task import Task
from fedarena.tensors import Tensors, stack


class InputMap(Protocol):
    """A linear map on a dense layer's input, shared by all clients of a round."""

    def apply(self, x: Tensor) -> Tensor:
        """[..., d_in] → [..., s]."""

    def adjoint(self, g: Tensor) -> Tensor:
        """[..., s] → [..., d_in], the transposed map."""


def uploads(
    task: Task,
    loss: Loss,
    start: Tensors,
    batches: Sequence[Batch],
    metric: Mapping[str, Tensor] | None = None,
    inputs: Mapping[str, InputMap] | None = None,
) -> Tensors:
    """`fedarena.local.upload` of every client, stacked."""
    return stack([upload(loss, start, batch, task.schedule, metric) for batch in batches])


ClientStep = Callable[[Tensors, Batch, Tensors, Tensors], tuple[Tensors, Tensors]]


def run_general(
    client: ClientStep,
    task: Task,
    down: Tensors,
    batches: Sequence[Batch],
    memories: Sequence[Tensors],
    noises: Sequence[Tensors],
) -> tuple[Tensors, list[Tensors]]:
    """Any client step for many clients."""
    done = [client(down, b, m, n) for b, m, n in zip(batches, memories, noises, strict=True)]
    return stack([up for up, _ in done]), [memory for _, memory in done]
