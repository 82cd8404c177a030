"""Candidate samples for membership inference.

Half of the candidates are members: samples behind the observation. The other half are outsiders: held-out samples that
no client ever trained on. The halves are equal, because a random guess is then right half of the time; the number of
outsiders does not move the ROC curve.

Nothing but what was observed may tell the halves apart:

- Each member has an outsider of its class, so that the class tells nothing. Where labels are numbers, any outsider is
  its counterpart.
- No sample is a candidate twice, in whatever rounds: clients come back to their samples, and there are fewer outsiders
  than samples, so that the number of times that a candidate recurs would tell. Once there is no counterpart left,
  nobody is asked about any more.
- No outsider is one of the attacker's own samples.
"""

from __future__ import annotations

from collections import defaultdict
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


def draw_questions(
    problem: Problem, outsiders: Tensor, truths: Sequence[tuple[Tensor, Tensor]], rng: Rng
) -> list[Question]:
    """Draw a question for each observation, with k members and k outsiders, shuffled.

    k is the number of samples behind the observation that have not been asked about, as long as there are counterparts.
    These are shared out evenly: k is at most ⌈outsiders left/observations left⌉.

    Args:
        outsiders: indices of the held-out samples that may be asked about.
        truths: the samples behind each observation, [n, *input_shape] and labels [n].
    """
    order = outsiders.cpu()[torch.randperm(len(outsiders), generator=rng.child("outsiders").torch())]
    waiting: dict[object, list[int]] = defaultdict(list)
    for at, label in zip(order.tolist(), _labels(problem, problem.y_test[order.to(problem.device)]), strict=True):
        waiting[label].append(at)
    asked: set[bytes] = set()
    questions = []
    for i, truth in enumerate(truths):
        most = -(-sum(map(len, waiting.values())) // (len(truths) - i))
        generator = rng.child("question", i).torch()
        pairs = _pairs(problem, waiting, truth, asked, most, generator)
        questions.append(_question(problem, truth, pairs, generator))
    return questions


def _labels(problem: Problem, y: Tensor) -> list[object]:
    """The classes; where labels are numbers, one class for all."""
    return list(y.tolist()) if problem.task.n_classes else [None] * len(y)


def _pairs(
    problem: Problem,
    waiting: dict[object, list[int]],
    truth: tuple[Tensor, Tensor],
    asked: set[bytes],
    most: int,
    generator: torch.Generator,
) -> list[tuple[int, int]]:
    """Members, by their place in `truth`, with the outsiders that are their counterparts.

    The members join `asked`, and the outsiders no longer wait.
    """
    x, labels = truth[0].cpu(), _labels(problem, truth[1])
    pairs: list[tuple[int, int]] = []
    for i in torch.randperm(len(labels), generator=generator).tolist():
        key = x[i].numpy().tobytes()
        if len(pairs) < most and key not in asked and waiting[labels[i]]:
            asked.add(key)
            pairs.append((i, waiting[labels[i]].pop()))
    return pairs


def _question(
    problem: Problem, truth: tuple[Tensor, Tensor], pairs: Sequence[tuple[int, int]], generator: torch.Generator
) -> Question:
    x, y = truth
    inside, outside = torch.tensor(pairs, dtype=torch.int64, device=problem.device).reshape(-1, 2).unbind(1)
    order = torch.randperm(2 * len(pairs), generator=generator).to(problem.device)
    held = problem.x_test[outside].float() / problem.scale
    candidates = Candidates(torch.cat([x[inside], held])[order], torch.cat([y[inside], problem.y_test[outside]])[order])
    return Question(candidates, order < len(pairs))
