"""A small federation, driven by hand: the protocol's functions in order, with everything written down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from fedarena.contracts.defense import Cohort
from fedarena.contracts.transcript import Round, weights
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.defenses.dbcl.card import Options
from fedarena.defenses.dbcl.protocol import DBCL
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Batch, Task


def mlp(widths: Sequence[int] = (12, 8, 6, 3)) -> nn.Sequential:
    """Dense layers with sigmoids between them."""
    layers: list[nn.Module] = []
    for a, b in pairwise(widths):
        layers += [nn.Linear(a, b), nn.Sigmoid()]
    return nn.Sequential(*layers[:-1])


def cnn() -> nn.Sequential:
    """1×8×8 images, two convolutions (one strided and padded), two dense layers, 3 classes."""
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1, stride=2),
        nn.Tanh(),
        nn.Conv2d(4, 5, 3),
        nn.Tanh(),
        nn.Flatten(),
        nn.Linear(20, 6),
        nn.Tanh(),
        nn.Linear(6, 3),
    )


def parameters(model: nn.Module, seed: int, dtype: torch.dtype = torch.float32) -> Tensors:
    """Random values for a model's parameters, other than the model's own."""
    g = torch.Generator().manual_seed(seed)
    named = model.named_parameters()
    return {n: torch.randn(p.shape, generator=g, dtype=dtype) / max(1, p[0].numel()) ** 0.5 for n, p in named}


def samples(shape: tuple[int, ...], schedule: Schedule, size: int, classes: int, g: torch.Generator) -> Batch:
    """One client's random local work of one round."""
    steps, b = schedule.steps(size), schedule.batch_size
    return Batch(torch.rand(steps, b, *shape, generator=g), torch.randint(0, classes, (steps, b), generator=g))


def play(
    rounds: int = 4,
    options: Options | None = None,
    model: nn.Sequential | None = None,
    shape: tuple[int, ...] = (12,),
    sizes: tuple[int, ...] = (8, 8, 8),
    participants: Callable[[int], tuple[int, ...]] | None = None,
    dtype: torch.dtype = torch.float32,
    **schedule: Any,
) -> tuple[DBCL, list[Round]]:
    """A few rounds of DBCL on random data; `schedule` overrides batches of 4 and a learning rate of 0.1."""
    times = Schedule(**{"rounds": rounds, "batch_size": 4, "lr": 0.1, **schedule})
    task = Task(model or mlp(), input_shape=shape, n_classes=3, sizes=sizes, schedule=times)
    defense, rng, g = DBCL(options or Options(), task), Rng(0), torch.Generator().manual_seed(0)
    state, written = defense.init(parameters(task.model, 0, dtype), rng), []
    for t in range(rounds):
        who = participants(t) if participants else tuple(range(len(sizes)))
        batches = [samples(shape, times, sizes[c], 3, g) for c in who]
        batches = [Batch(b.x.to(dtype), b.y) for b in batches]
        sent = defense.broadcast(state, rng.child("broadcast", t))
        ups, _ = defense.clients(sent.down, batches, [{}] * len(who), [{}] * len(who))
        new = defense.aggregate(state, sent, ups, Cohort(tuple(who), weights(sizes, who)), Rng(0))
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
    return defense, written


def cosine(a: Tensors, b: Tensors) -> float:
    """Cosine between two sets of tensors, by the names of the first."""
    x, y = (torch.cat([t[n].flatten() for n in a]).double() for t in (a, b))
    return float(x @ y / (x.norm() * y.norm()))


def distance(a: Tensors, b: Tensors) -> float:
    """Relative L2 distance of `a` from `b`, by the names of `a`."""
    x, y = (torch.cat([t[n].flatten() for n in a]).double() for t in (a, b))
    return float((x - y).norm() / y.norm())


def one_hot(y: Tensor, classes: int = 3) -> Tensor:
    """Classes → probabilities."""
    return torch.nn.functional.one_hot(y, classes).float()
