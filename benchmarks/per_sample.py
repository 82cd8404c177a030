"""Sums of normalised per-sample gradients of many clients, 16 samples each: against one gradient at a time and Opacus.

Opacus runs where it is installed, with as many clients a call as suits it best (1 or 5). No momentum, no noise.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
import torch.nn.functional as F
from side_by_side import Row, alternate, faster, main, note
from torch import Tensor

from fedarena.core.registry import find
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.problem.client_steps.per_sample import Bound, many_clients
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Batch, Task

SAMPLES = 16
CASES = (("mlp-two-stage", 50, 4.0), ("cnn-two-stage", 10, 1.5))


def one_at_a_time(task: Task, params: Tensors, batches: list[Batch]) -> Callable[[], Tensor]:
    """A backward pass for every sample."""
    model = copy.deepcopy(task.model)
    model.load_state_dict(params)
    own = list(model.parameters())

    def run() -> Tensor:
        out = []
        for batch in batches:
            total = torch.zeros(sum(p.numel() for p in own))
            for x, y in zip(*batch.images(), strict=True):
                each = torch.autograd.grad(F.cross_entropy(model(x[None]), y[None]), own)
                flat = torch.cat([g.flatten() for g in each])
                total += flat / flat.norm()
            out.append(total)
        return torch.stack(out)

    return run


def with_opacus(task: Task, params: Tensors, batches: list[Batch], together: int) -> Callable[[], Tensor] | None:
    """`together` clients in a call of Opacus' GradSampleModule; None where Opacus is not installed."""
    try:
        from opacus.grad_sample import GradSampleModule
    except ImportError:
        return None
    plain = copy.deepcopy(task.model)
    plain.load_state_dict(params)
    model = GradSampleModule(plain, loss_reduction="sum")

    def run() -> Tensor:
        out = []
        for first in range(0, len(batches), together):
            some = batches[first : first + together]
            x, y = torch.cat([b.x[0] for b in some]), torch.cat([b.y[0] for b in some])
            F.cross_entropy(model(x), y, reduction="sum").backward()
            each = torch.cat([p.grad_sample.flatten(1) for p in model.parameters()], 1)
            for p in model.parameters():
                p.grad_sample = None
                p.grad = None
            out.append((each / each.norm(dim=1, keepdim=True)).view(len(some), SAMPLES, -1).sum(1))
        return torch.cat(out)

    return run


def measure(repetitions: int) -> list[Row]:
    """Rows of each model."""
    rows = []
    for model, clients, bar in CASES:
        architecture = find("model", model).load()(find("model", model).parse({}))
        module, g = architecture.module((1, 28, 28), 10), Rng(0).torch()
        params = architecture.init(module, g)
        task = Task(
            module,
            input_shape=(1, 28, 28),
            n_classes=10,
            sizes=(SAMPLES,) * clients,
            schedule=Schedule(batch_size=SAMPLES),
        )
        batches = [
            Batch(torch.rand(1, SAMPLES, 1, 28, 28, generator=g), torch.randint(0, 10, (1, SAMPLES), generator=g))
            for _ in range(clients)
        ]
        candidates = {
            "fedarena": lambda t=task, p=params, b=batches: many_clients(t, p, b, None, 0.0, Bound(1.0, True)),
            "one at a time": one_at_a_time(task, params, batches),
        }
        for together in (1, 5):
            peer = with_opacus(task, params, batches, together)
            if peer is not None:
                candidates[f"opacus, {together} a call"] = peer
        truth = candidates["one at a time"]()
        for name, run in candidates.items():
            assert (run() - truth).norm() < 1e-5 * truth.norm(), f"{name} computes something else"
        spent = alternate(candidates, repetitions)
        what = f"{model}, {clients} clients"
        for name in list(candidates)[1:]:
            rows.append(faster(what, "fedarena", name, spent, at_least=bar))
        if len(candidates) == 2:
            note(f"{what}: opacus is not installed")
    return rows


if __name__ == "__main__":
    main(__doc__, measure, repetitions=5)
