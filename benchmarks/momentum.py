"""A whole FedSGD round with client momentum against the same round without: what momentum costs the fast forms.

Each client takes one batch of 25. MLP 784-200-200-10 and 784-32-10 (25 thousand parameters) with 50 clients, and two
CNNs with 10. With momentum, each client has a memory from the round before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from side_by_side import Row, alternate, costlier, main
from work import SHAPE, Federation, federation

from fedarena.contracts.defense import Cohort, State
from fedarena.core.registry import find
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.problem.task import Batch

BATCH, AT_MOST = 25, 1.10
CASES = (("mlp", "200,200", 50), ("mlp", "32", 50), ("cnn-two-stage", "", 10), ("cnn-mnist", "", 10))


def measure(repetitions: int) -> list[Row]:
    """One row a case."""
    rows = []
    for model, widths, clients in CASES:
        f = federation(model, clients, **({"widths": widths} if widths else {}))
        spent = alternate({"momentum": one_round(f, "momentum"), "none": one_round(f, "sgd")}, repetitions)
        what = f"{model}{' ' + widths if widths else ''}, {clients} clients"
        rows.append(costlier(what, "momentum", "none", spent, at_most=AT_MOST))
    return rows


def one_round(f: Federation, optimizer: str) -> Callable[[], Tensors]:
    """Broadcast, one gradient or momentum of each client, aggregation by the mean."""
    schedule = replace(f.task.schedule, local_epochs=0, batch_size=BATCH, client_optimizer=optimizer)
    card = find("defense", "fedavg")
    defense = card.load()(card.options(), replace(f.task, schedule=schedule))
    batches = [Batch(x[None, :BATCH], y[None, :BATCH]) for x, y in zip(f.x, f.y, strict=True)]
    cohort = Cohort(tuple(range(f.clients)), torch.ones(f.clients))
    nothing: list[Tensors] = [{}] * f.clients
    memories = nothing

    def run() -> Tensors:
        nonlocal memories
        state = State(f.start)
        sent = defense.broadcast(state, Rng(0))
        ups, memories = defense.clients(sent.down, batches, memories, nothing)
        new: State = defense.aggregate(state, sent, ups, cohort, Rng(0))
        return new.params

    assert batches[0].x.shape == (1, BATCH, *SHAPE)
    return run


if __name__ == "__main__":
    main(__doc__, measure)
