"""Local training on candidates of which every epoch has its own, since each visits the samples in an unknown order."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from fedarena.contracts.kept_entries import without_gaps
from fedarena.contracts.observation import Observation, Simulator
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
        once: the simulator of samples that are given once, maybe with entries left out.
        epochs: the local epochs.
    """

    once: Simulator
    epochs: int

    def __call__(self, x: Tensor, y: Tensor) -> Tensors:
        once, kept = without_gaps(self.once)
        assert isinstance(once, Once), "checked by `every_visit`"
        task = task_of(once)
        size = task.schedule.batch_size
        batch = Batch(x.reshape(-1, size, *x.shape[1:]), y.reshape(-1, size, *y.shape[1:]))
        if isinstance(once, ThroughProtocol):
            sent = once.defense.client(once.down, batch, once.memory, {})[0]
        else:
            sent = upload(task.loss, once.params, batch, task.schedule)
        if isinstance(once, PlainGradient):  # the paper form sees the update, divided by its steps and learning rate
            sent = scale(1 / (len(batch.x) * task.schedule.lr), sent)
        return sent if kept is None else {name: t * kept[name] for name, t in sent.items()}


def task_of(simulate: Once) -> Task:
    """The public facts that a simulator holds."""
    return simulate.defense.task if isinstance(simulate, ThroughProtocol) else simulate.task


def every_visit(seen: Observation) -> EveryVisit | None:
    """The simulator of every visit; None where the order of the samples does not matter or cannot be played.

    It does not matter in one epoch, nor where every step takes all samples. It cannot be played behind several clients.
    """
    once, _ = without_gaps(seen.simulate)
    if not isinstance(once, Once) or len(seen.clients) > 1:
        return None
    schedule = task_of(once).schedule
    if schedule.local_epochs < 2 or seen.images <= schedule.batch_size:
        return None
    return EveryVisit(seen.simulate, schedule.local_epochs)
