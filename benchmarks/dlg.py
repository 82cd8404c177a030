"""Gradient evaluations per second of DLG: 32 restarts as one batch against one restart at a time.

    OMP_NUM_THREADS=1 python benchmarks/dlg.py

Sigmoid LeNet on 1×28×28, batch 1, FedSGD, random data. Both forms run in this process in turns, one torch thread,
process CPU time, medians. `single` is the cheapest form known for one candidate: plain autograd through the
gradient, without vmap; `batched` is what the attack runs. Exits with 1 when batched ÷ single is below the bar.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable

import torch
from torch import Tensor

from fedarena.attacks.reconstruction.helpers.matching import MatchingObjective, squared_distance
from fedarena.contracts.observation import Observation
from fedarena.contracts.simulators import ThroughProtocol
from fedarena.core.options import NoOptions
from fedarena.core.rng import Rng
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.models.lenet_dlg import DlgLeNet
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Task

SHAPE, CLASSES, RESTARTS, BAR = (1, 28, 28), 10, 32, 4.0


def observation(task: Task, rng: Rng) -> Observation:
    """One FedSGD upload of a random image."""
    g = rng.torch()
    params = {name: torch.rand(p.shape, generator=g) - 0.5 for name, p in task.model.named_parameters()}
    simulate = ThroughProtocol(FedAvg(NoOptions(), task), params, (0,))
    target = simulate(torch.rand((1, *SHAPE), generator=g), torch.eye(CLASSES)[:1])
    return Observation(0, clients=(0,), images=1, target=target, simulate=simulate)


def single(task: Task, seen: Observation, objective: MatchingObjective) -> Callable[[Tensor], Tensor]:
    """One candidate's gradient by plain autograd."""
    assert isinstance(seen.simulate, ThroughProtocol)
    params = {name: p.clone().requires_grad_() for name, p in seen.simulate.down.items()}
    size = sum(float(t.square().sum()) for t in seen.target.values())

    def gradient(point: Tensor) -> Tensor:
        leaf = point.detach().requires_grad_()
        loss = task.loss(params, *objective.split(leaf))
        upload = dict(zip(params, torch.autograd.grad(loss, tuple(params.values()), create_graph=True), strict=True))
        (out,) = torch.autograd.grad(squared_distance(upload, seen.target) / size, leaf)
        return out

    return gradient


def measure(rounds: int = 15) -> tuple[float, float]:
    """(single, batched) gradient evaluations per CPU second."""
    rng = Rng(0)
    task = Task(
        DlgLeNet(NoOptions()).module(SHAPE, CLASSES),
        input_shape=SHAPE,
        n_classes=CLASSES,
        sizes=(1,),
        schedule=Schedule(batch_size=1),
    )
    seen = observation(task, rng.child("victim"))
    objective = MatchingObjective(seen, shape=(1, *SHAPE), classes=CLASSES, labels=None, tv=0.0)
    points = torch.randn(RESTARTS, torch.Size(SHAPE).numel() + CLASSES, generator=rng.child("points").torch())
    one, many = single(task, seen, objective), objective.evaluate
    apart = torch.stack([one(p) for p in points])
    together = many(points)[1]
    assert torch.allclose(apart, together, rtol=1e-3, atol=1e-6 * float(apart.abs().max())), "the forms disagree"
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        started = time.process_time()
        for p in points[:8]:
            one(p)
        times[0].append((time.process_time() - started) / 8)
        started = time.process_time()
        many(points)
        times[1].append((time.process_time() - started) / RESTARTS)
    return 1 / statistics.median(times[0]), 1 / statistics.median(times[1])


def main() -> int:
    torch.set_num_threads(1)
    one, many = measure()
    if "--json" in sys.argv[1:]:
        print(json.dumps({"single": one, "batched": many, "ratio": many / one, "bar": BAR}))
        return 0 if many >= BAR * one else 1
    print(f"single   {one:8.0f} gradient evaluations per CPU second")
    print(f"batched  {many:8.0f}  ({RESTARTS} restarts): × {many / one:.1f}, at least {BAR} wanted")
    return 0 if many >= BAR * one else 1


if __name__ == "__main__":
    raise SystemExit(main())
