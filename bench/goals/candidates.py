"""Candidate samples for membership inference.

Half of the candidates are members: the samples behind the observation. The other half are outsiders: held-out samples
that no client ever trained on. The halves are equal, because a random guess is then right half of the time; the number
of outsiders does not move the ROC curve. Outsiders are drawn with the class shares of the clients behind the
observation, so that the class alone does not give an outsider away. Where labels are numbers, they are drawn at random.
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
        candidates: m = 2k samples, shuffled; the attack gets them.
        members: [m] (bool), which of them were behind the observation; only the judge gets this.
    """

    candidates: Candidates
    members: Tensor


def draw_question(problem: Problem, clients: Sequence[int], truth: tuple[Tensor, Tensor], rng: Rng) -> Question:
    """Draw a question with k members and k outsiders, shuffled.

    k is the number of samples behind the observation. Where fewer held-out samples are usable, k is their number, and
    both halves are drawn at random.

    Args:
        clients: the clients whose samples are behind the observation.
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
    """m, the number of candidates, for an observation of `samples` samples of these clients."""
    return 2 * min(samples, int((_like_the_shards(problem, clients) > 0).sum()))


def _like_the_shards(problem: Problem, clients: Sequence[int]) -> Tensor:
    """Weights of the held-out samples [N_test] under which a draw has the classes' mean shares of the clients' data.

    Where the labels are numbers, all weights are 1.
    """
    classes = problem.task.n_classes
    if not classes:
        return torch.ones(len(problem.y_test), dtype=torch.float64)
    shards = torch.stack([problem.y[problem.shards[c]].bincount(minlength=classes).double() for c in clients])
    wanted = (shards / shards.sum(1, keepdim=True)).mean(0)
    there = problem.y_test.bincount(minlength=classes).clamp(min=1)
    return (wanted / there)[problem.y_test].cpu()
