"""Local training on candidates of which every epoch has its own, since each visits the samples in an unknown order."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from fedarena.contracts.observation import Observation
from fedarena.contracts.simulators import LocalUpdate, PlainGradient, ThroughProtocol
from fedarena.core.tensors import Tensors, scale
from fedarena.problem.local_training import upload
from fedarena.problem.task import Batch, Task

Once = LocalUpdate | PlainGradient | ThroughProtocol
"""Simulators of samples [n, ...] that are visited in the same order in all epochs, or of their plain gradient."""


@dataclass(frozen=True)
class EveryVisit:
    """Simulator: what one client sends whose local steps visit samples [epochs·n, ...] in this order.

    Attributes:
        once: the simulator of samples that are given once.
        epochs: the local epochs.
    """

    once: Once
    epochs: int

    def __call__(self, x: Tensor, y: Tensor) -> Tensors:
        task = task_of(self.once)
        size = task.schedule.batch_size
        batch = Batch(x.reshape(-1, size, *x.shape[1:]), y.reshape(-1, size, *y.shape[1:]))
        if isinstance(self.once, ThroughProtocol):
            return self.once.defense.client(self.once.down, batch, self.once.memory, {})[0]
        sent = upload(task.loss, self.once.params, batch, task.schedule)
        # In the paper form what was seen is the update, divided by its steps and the learning rate.
        return sent if isinstance(self.once, LocalUpdate) else scale(1 / (len(batch.x) * task.schedule.lr), sent)


def task_of(simulate: Once) -> Task:
    """The public facts that a simulator holds."""
    return simulate.defense.task if isinstance(simulate, ThroughProtocol) else simulate.task


def every_visit(seen: Observation) -> EveryVisit | None:
    """The simulator of every visit; None where the order of the samples does not matter or cannot be played.

    It does not matter in one epoch, nor where every step takes all samples. It cannot be played behind several clients.
    """
    if not isinstance(seen.simulate, Once) or len(seen.clients) > 1:
        return None
    schedule = task_of(seen.simulate).schedule
    if schedule.local_epochs < 2 or seen.images <= schedule.batch_size:
        return None
    return EveryVisit(seen.simulate, schedule.local_epochs)
