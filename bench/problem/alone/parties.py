"""What a party reaches that trains on its own samples alone: what a federation has to beat.

A party trains as well as it can. It tries each of `RATES` with Adam, looks at its model after each share `STOPS` of the
steps, and judges it on samples that it has kept back: a fifth of them, or each fifth in turn where it has fewer than
`FEW`. Then it trains on all of its samples with the best rate and stop. It begins from the federation's initial
parameters, and the problem's held-out data judge the result.

With few samples the choice is the limit, and not the training. On `smoke`'s problem `poison` (MLP, server with 20
samples, five seeds) it reaches .700. With plain gradient descent at rates .1, .3 and 1 among the choices it reaches
.706, and the best of all recipes in hindsight .736; on the problems `poison` and `model` of `digits` the former changes
the mean by −.004 and −.001. No rank rests on so little (`fedarena.board.references.without_gain`).

All models of a choice are trained together (`fedarena.problem.alone.lessons`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

import torch
from torch import Tensor

from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.problem.alone.lessons import Lesson, Samples, train
from fedarena.problem.problem import Problem

RATES = (0.001, 0.003, 0.01)
"""The learning rates that are tried."""
USUAL_RATE = 0.003
"""The rate of a party that cannot choose, since it has no two samples of a class. It takes all steps."""
STOPS = (0.0625, 0.125, 0.25, 0.5, 1.0)
"""The shares of the steps after which a model is judged."""
KEPT_BACK = 5
"""One of so many samples is kept back."""
FEW = 50
"""With fewer samples, each fifth is kept back in turn."""
BATCH = 32
"""The samples of a step, drawn with replacement."""
STEPS, EPOCHS, MOST_STEPS = 200, 10, 400
"""A party takes `EPOCHS` epochs, but at least `STEPS` and at most `MOST_STEPS` steps."""
MOST_CLIENTS = 5
"""At most so many clients, drawn at random, stand for all."""

Mark = tuple[float, float]
"""(accuracy, −loss), by which models are compared; the accuracy is 0 where labels are numbers."""


@dataclass(frozen=True)
class _Split:
    """A party's samples, as indices: those to train on and those that are kept back."""

    party: int
    train: Tensor
    kept_back: Tensor


@dataclass(frozen=True)
class _Alone:
    """The samples of all parties in one pool, and the indices [N_i] of each party's."""

    problem: Problem
    samples: Samples
    parties: tuple[Tensor, ...]


def local_only(problem: Problem, rng: Rng) -> float:
    """The mean quality, on held-out data, of the models that clients train alone.

    Clients that are corrupted when the federation is attacked are left out. Of more than `MOST_CLIENTS` others so many
    are drawn.
    """
    honest = [c for c in range(len(problem.shards)) if c not in problem.corrupted]
    drawn = torch.randperm(len(honest), generator=rng.child("clients").torch())[:MOST_CLIENTS]
    shards = [problem.shards[honest[i]] for i in sorted(drawn.tolist())]
    pool = torch.cat(shards)
    offsets = torch.arange(len(pool)).split([len(s) for s in shards])
    return fmean(_qualities(_Alone(problem, Samples(problem.inputs(pool), problem.y[pool]), offsets), rng))


def server_only(problem: Problem, rng: Rng) -> float | None:
    """The quality, on held-out data, of the model that the server trains on its samples; None if it has none."""
    if problem.auxiliary is None:
        return None
    x, y = problem.auxiliary.images()
    x = x.to(next(iter(problem.init.values())).dtype)
    return _qualities(_Alone(problem, Samples(x, y), (torch.arange(len(y)),)), rng)[0]


def _qualities(alone: _Alone, rng: Rng) -> list[float]:
    """The quality of each party's model on the problem's held-out data."""
    stops = _stops(max(len(own) for own in alone.parties))
    choices = _choices(alone, stops, rng)
    qualities = dict.fromkeys(range(len(alone.parties)), 0.0)
    for rate in sorted({rate for rate, _ in choices}):
        parties = [i for i, (own, _) in enumerate(choices) if own == rate]
        last = max(choices[i][1] for i in parties)
        lessons = _lessons([alone.parties[i] for i in parties], rate, last, rng.child("all samples"))
        for k, step, params in _trained(alone, lessons, stops):
            if choices[parties[k]][1] == step:
                qualities[parties[k]] = alone.problem.evaluate(params)[0]
    return list(qualities.values())


def _stops(size: int) -> list[int]:
    """The steps after which models are judged, the last one included."""
    steps = min(MOST_STEPS, max(STEPS, EPOCHS * size // BATCH))
    return [round(share * steps) for share in STOPS]


def _choices(alone: _Alone, stops: Sequence[int], rng: Rng) -> list[tuple[float, int]]:
    """The (rate, step) of each party that does best on samples that were kept back."""
    splits = [split for i in range(len(alone.parties)) for split in _splits(alone, i, rng.child("kept back", i))]
    marks: dict[tuple[int, float, int], list[tuple[Mark, int]]] = {}
    train_parts = [split.train for split in splits]
    lessons = [one for rate in RATES for one in _lessons(train_parts, rate, stops[-1], rng.child("choice"))]
    for k, step, params in _trained(alone, lessons, stops):
        split = splits[k % len(splits)]
        judged = (_mark(alone, params, split.kept_back), len(split.kept_back))
        marks.setdefault((split.party, lessons[k].rate, step), []).append(judged)
    pairs = [(rate, step) for rate in RATES for step in stops]
    judged_parties = {split.party for split in splits}
    return [
        max(pairs, key=lambda pair: _mean(marks[i, *pair])) if i in judged_parties else (USUAL_RATE, stops[-1])
        for i in range(len(alone.parties))
    ]


def _splits(alone: _Alone, party: int, rng: Rng) -> list[_Split]:
    """The splits of a party's samples; none if no class has two of them, since a class must be seen to be judged."""
    own = alone.parties[party]
    own = own[torch.randperm(len(own), generator=rng.torch())]
    labels = alone.samples.y.cpu()[own]
    if len(own) < 2 or (alone.problem.task.n_classes and int(labels.bincount().max()) < 2):
        return []
    # Samples of a class go to different parts, so that the others show the class to the model.
    own = own[labels.argsort(stable=True)]
    folds = [own[k::KEPT_BACK] for k in range(min(KEPT_BACK, len(own)))]
    splits = [_Split(party, torch.cat([f for f in folds if f is not kept]), kept) for kept in folds]
    return splits if len(own) < FEW else splits[:1]


@torch.no_grad()
def _mark(alone: _Alone, params: Tensors, index: Tensor) -> Mark:
    task, index = alone.problem.task, index.to(alone.samples.y.device)
    y, out = alone.samples.y[index], task.outputs(params, alone.samples.x[index])
    # R² of a few numbers says little.
    accuracy = task.criterion.quality(out, y) if task.n_classes else 0.0
    loss = float(task.criterion.mean(out, y))
    return accuracy, -loss


def _mean(marks: Sequence[tuple[Mark, int]]) -> Mark:
    """The mean over all samples that were kept back."""
    samples = sum(n for _, n in marks)
    accuracy, loss = (sum(mark[i] * n for mark, n in marks) / samples for i in (0, 1))
    return accuracy, loss


def _lessons(parts: Sequence[Tensor], rate: float, steps: int, rng: Rng) -> list[Lesson]:
    """A lesson for each part of the pool's samples. At every rate the same batches are drawn."""
    if not parts:
        return []
    sizes, generator = torch.tensor([[len(part)] for part in parts]), rng.torch()
    drawn = torch.stack([(torch.rand(len(parts), BATCH, generator=generator) * sizes).long() for _ in range(steps)], 1)
    return [Lesson(rate, part[picked]) for part, picked in zip(parts, drawn, strict=True)]


def _trained(alone: _Alone, lessons: Sequence[Lesson], stops: Sequence[int]) -> Iterator[tuple[int, int, Tensors]]:
    """(lesson, step, parameters) after each stop."""
    return train(alone.problem.task, alone.problem.init, alone.samples, lessons, stops)
