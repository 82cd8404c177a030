"""Whom an attack that tells members is asked about.

Half of the candidates are members: the samples behind the observation. The other half, as many, are held out: no
client ever trained on them. As many, because a guess at random is then right half of the time, and since their number
does not move the ROC curve. They are drawn with the classes' shares of the clients behind the observation, so that on
clients with few classes it is not the class that gives an outsider away; where labels are numbers, at random.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from fedarena.contracts.observation import Candidates
from fedarena.core.rng import Rng
from fedarena.problem.problem import Problem


@dataclass(frozen=True)
class Question:
    """The candidates of one observation, and the answer.

    Attributes:
        candidates: m = 2k samples, shuffled; what the attack gets.
        members: [m] (bool), which of them were behind the observation; what the judge keeps.
    """

    candidates: Candidates
    members: Tensor


def ask(problem: Problem, clients: Sequence[int], truth: tuple[Tensor, Tensor], rng: Rng) -> Question:
    """k members and k outsiders; k is the number of samples behind the observation, or of usable held-out ones if
    there are fewer, and then both halves are drawn at random.

    Args:
        clients: whose samples are behind the observation.
        truth: these samples, [n, *input_shape] and labels [n].
    """
    x, y = truth
    generator, likely = rng.torch(), _like_the_shards(problem, clients)
    k = how_many(problem, clients, len(y)) // 2
    inside = torch.randperm(len(y), generator=generator)[:k].to(y.device)
    outside = torch.multinomial(likely, k, generator=generator) if k else torch.empty(0, dtype=torch.int64)
    outside, order = outside.to(y.device), torch.randperm(2 * k, generator=generator).to(y.device)
    held = problem.x_test[outside].float() / problem.scale
    candidates = Candidates(torch.cat([x[inside], held])[order], torch.cat([y[inside], problem.y_test[outside]])[order])
    return Question(candidates, order < k)


def how_many(problem: Problem, clients: Sequence[int], samples: int) -> int:
    """m for an observation of so many samples of these clients."""
    return 2 * min(samples, int((_like_the_shards(problem, clients) > 0).sum()))


def _like_the_shards(problem: Problem, clients: Sequence[int]) -> Tensor:
    """Weights of the held-out samples [N_test] under which a draw has the classes' mean shares of the clients' data.

    All alike where the labels are numbers.
    """
    classes = problem.task.n_classes
    if not classes:
        return torch.ones(len(problem.y_test), dtype=torch.float64)
    shards = torch.stack([problem.y[problem.shards[c]].bincount(minlength=classes).double() for c in clients])
    wanted = (shards / shards.sum(1, keepdim=True)).mean(0)
    there = problem.y_test.bincount(minlength=classes).clamp(min=1)
    return (wanted / there)[problem.y_test].cpu()
