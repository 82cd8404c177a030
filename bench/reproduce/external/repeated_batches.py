"""What repeats in the released code of Karimireddy, He and Jaggi: the batches of a worker, and the masks of dropout.

A worker's loader begins anew every 30 rounds with the same order, so that it trains on the same 960 samples all the
time. The code restores the random state after every worker's call, too, so that dropout leaves out the same units for
the sample at one place of any batch. So a sample always meets the same units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, to
from fedarena.models.drawn import draw_masks
from fedarena.problem.problem import Problem
from fedarena.problem.task import Batch

SAMPLES = 960
"""Samples of a worker that it ever trains on: 30 batches of 32."""
REPEATS = "in the code batches and masks of dropout repeat, so that a sample always meets the same units"
"""The cause, beside numbers that come back with them."""


@dataclass(frozen=True)
class RepeatedBatches:
    """The batches that are prescribed to all clients.

    Attributes:
        problem: whose samples they are.
        orders: for each client the samples in the order that stays.
        masks: what dropout leaves out of each batch, of all clients and in all rounds.
    """

    problem: Problem
    orders: Sequence[Tensor]
    masks: Tensors

    @classmethod
    def of(cls, problem: Problem, orders: Sequence[Tensor], rng: Rng) -> RepeatedBatches:
        """Those with masks drawn from a stream."""
        batch = problem.task.schedule.batch_size
        masks = draw_masks(problem.task.model, (1, batch), rng.child("masks"))
        return cls(problem, orders, to(masks, problem.device))

    def __call__(self, t: int, client: int) -> Batch:
        """The batch of round t: the next samples of the client's order, from its start after the last."""
        order, size = self.orders[client], self.problem.task.schedule.batch_size
        first = size * t % len(order)
        index = order[first : first + size]
        return Batch(self.problem.inputs(index)[None], self.problem.y[index][None], self.masks)
