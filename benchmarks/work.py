"""The work that all forms and peers do: each client takes ten steps of plain SGD on batches of ten; one round."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fedarena.contracts.defense import Cohort, State
from fedarena.core.registry import find
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Batch, Task

STEPS, BATCH, LR, CLASSES, SHAPE = 10, 10, 0.05, 10, (1, 28, 28)


@dataclass(frozen=True)
class Federation:
    """Clients with random images of MNIST's shape.

    Attributes:
        name: the model's name in the registry.
        task: model and schedule.
        start: initial parameters.
        x: [clients, STEPS·BATCH, *shape].
        y: [clients, STEPS·BATCH].
        shape: of an image.
    """

    name: str
    task: Task
    start: Tensors
    x: Tensor
    y: Tensor
    shape: tuple[int, ...] = SHAPE

    @property
    def clients(self) -> int:
        """How many there are."""
        return self.x.shape[0]

    def model(self) -> nn.Module:
        """A fresh module that holds the initial parameters."""
        card = find("model", self.name)
        module: nn.Module = card.load()(card.parse({})).module(self.shape, CLASSES)
        module.load_state_dict(self.start)
        return module


def federation(name: str, clients: int, shape: tuple[int, ...] = SHAPE, **options: str) -> Federation:
    """`clients` clients that train a model of the registry on random images of a shape."""
    card = find("model", name)
    architecture = card.load()(card.parse(options))
    module = architecture.module(shape, CLASSES)
    g = Rng(0).torch()
    x = torch.rand(clients, STEPS * BATCH, *shape, generator=g)
    y = torch.randint(0, CLASSES, (clients, STEPS * BATCH), generator=g)
    schedule = Schedule(rounds=1, batch_size=BATCH, local_epochs=1, lr=LR)
    task = Task(module, input_shape=shape, n_classes=CLASSES, sizes=(STEPS * BATCH,) * clients, schedule=schedule)
    return Federation(name, task, architecture.init(module, g), x, y, shape)


def fedarena_round(f: Federation) -> Callable[[], Tensors]:
    """One whole round of the defense `fedavg`: broadcast, local work of all clients, aggregation."""
    card = find("defense", "fedavg")
    defense = card.load()(card.options(), f.task)
    nothing: list[Tensors] = [{}] * f.clients

    def run() -> Tensors:
        state = State(f.start)
        sent = defense.broadcast(state, Rng(0))
        batches = [Batch(x.view(STEPS, BATCH, *f.shape), y.view(STEPS, BATCH)) for x, y in zip(f.x, f.y, strict=True)]
        ups, _ = defense.clients(sent.down, batches, nothing, nothing)
        new: State = defense.aggregate(state, sent, ups, Cohort(tuple(range(f.clients)), torch.ones(f.clients)), Rng(0))
        return new.params

    return run


def plain_round(f: Federation) -> Callable[[], Tensors]:
    """The same as one would write it in PyTorch: a model, its optimiser, a loop over clients and batches, a mean."""
    model = f.model()
    optimizer = torch.optim.SGD(model.parameters(), LR)

    def run() -> Tensors:
        total = {name: torch.zeros_like(p) for name, p in f.start.items()}
        for client in range(f.clients):
            model.load_state_dict(f.start)
            for x, y in zip(f.x[client].split(BATCH), f.y[client].split(BATCH), strict=True):
                optimizer.zero_grad()
                F.cross_entropy(model(x), y).backward()
                optimizer.step()
            for name, p in model.named_parameters():
                total[name] += p.detach()
        return {name: t / f.clients for name, t in total.items()}

    return run


def check(f: Federation, run: Callable[[], Tensors], what: str) -> None:
    """Hold a candidate to the plain loop: the same model after the round. Raises AssertionError."""
    expected, got = plain_round(f)(), run()
    for name, p in expected.items():
        moved = (p - f.start[name]).norm()
        assert (got[name] - p).norm() < 1e-3 * moved, f"{what} computes something else: {name}"
