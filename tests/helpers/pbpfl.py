"""PBPFL driven by hand: a small federation, one round at a time, in double precision."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from fedarena.contracts.defense import Cohort, State
from fedarena.contracts.transcript import Round, cut, weights
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, flatten
from fedarena.core.threat import Threat
from fedarena.federation.compose import make_defense, parse_defense
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Batch, Task
from helpers.dbcl import parameters, samples

SIZES = (8, 12, 20)


def mlp(bias: bool = True) -> nn.Sequential:
    return nn.Sequential(nn.Linear(12, 8, bias), nn.ReLU(), nn.Linear(8, 6, bias), nn.ReLU(), nn.Linear(6, 3, bias))


def cnn() -> nn.Sequential:
    """1×8×8 images, 3 classes."""
    convolutions = [nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 5, 3), nn.ReLU()]
    return nn.Sequential(*convolutions, nn.AvgPool2d(2), nn.Flatten(), nn.Linear(5, 6), nn.ReLU(), nn.Linear(6, 3))


def make(model=None, shape=(12,), sizes=SIZES, classes=3, name="pbpfl", schedule=None, **options: Any):
    times = Schedule(**{"rounds": 4, "batch_size": 4, "lr": 0.1, "loss": "mse", **(schedule or {})})
    text = {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in options.items()}
    return make_defense(
        parse_defense(name, text),
        Task(model or mlp(), input_shape=shape, n_classes=classes, sizes=sizes, schedule=times),
    )


def start(defense, seed=0, dtype=torch.float64) -> State:
    return State(parameters(defense.task.model, seed, dtype))


def drawn(defense, seed, dtype=torch.float64) -> Batch:
    task = defense.task
    found = samples(task.input_shape, task.schedule, min(task.sizes), max(1, task.n_classes), Rng(seed).torch())
    y = found.y if task.n_classes else torch.rand(found.y.shape, generator=Rng(seed).child("y").torch(), dtype=dtype)
    return Batch(found.x.to(dtype), y)


def play(defense, rounds=3, seed=0, dtype=torch.float64, state=None) -> tuple[list[Round], State]:
    """Rounds in which all clients take part."""
    state, sizes, written = state or start(defense, seed, dtype), defense.task.sizes, []
    who = tuple(range(len(sizes)))
    for t in range(rounds):
        sent = defense.broadcast(state, Rng(seed).child("broadcast", t))
        batches = [drawn(defense, 1000 * seed + 10 * t + c, dtype) for c in who]
        ups, _ = defense.clients(sent.down, batches, [{}] * len(who), [{}] * len(who))
        new = defense.aggregate(state, sent, ups, Cohort(who, weights(sizes, who)), Rng(seed).child("aggregate", t))
        written.append(
            Round(
                t,
                participants=who,
                params=state.params,
                after=new.params,
                secret=sent.secret,
                down=sent.down,
                ups=ups,
                batches=tuple(batches),
            )
        )
        state = new
    return written, state


def mean_gradient(defense, params: Tensors, batches) -> Tensors:
    """Σ_c (N_c/N) ∇F_c(W), plainly."""
    sizes, task = defense.task.sizes, defense.task
    found = [torch.func.grad(task.loss)(params, *b.images()) for b in batches]
    return {n: sum(s * g[n] for s, g in zip(sizes, found, strict=True)) / sum(sizes) for n in params}


def relative(a: Tensors, b: Tensors) -> float:
    """‖a − b‖/‖b‖ of all tensors as one vector."""
    flat = [torch.cat([t[n].flatten() for n in b]) for t in (a, b)]
    return float((flat[0] - flat[1]).norm() / flat[1].norm())


MODELS = [(mlp, (12,)), (cnn, (1, 8, 8))]


def shard(defense, n=300, seed=9):
    g = torch.Generator().manual_seed(seed)
    x = torch.rand(1, n, *defense.task.input_shape, generator=g, dtype=torch.float64)
    return Batch(x, torch.randint(0, 3, (1, n), generator=g))


def views(defense, rounds, party, form="adaptive", victims=None):
    threat = Threat(party, form)
    seen = cut(rounds, threat, shard(defense) if party == "client" else None)
    return defense.readings(threat, seen, range(len(rounds)) if victims is None else victims)


def cosine(a, b):
    return float(torch.nn.functional.cosine_similarity(flatten(a), flatten(b), dim=0))


def one_hot(batch):
    x, y = batch.images()
    return x, torch.nn.functional.one_hot(y, 3).to(x)
