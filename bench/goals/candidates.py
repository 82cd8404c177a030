"""Candidate samples for membership inference.

Half of the candidates are members: samples behind the observation. The other half are outsiders: held-out samples that
no client ever trained on. The halves are equal, because a random guess is then right half of the time; the number of
outsiders does not move the ROC curve.

Nothing but what was observed may tell the halves apart:

- Outsiders have the classes that members have in the long run: the class of each is drawn with the shares of the
  samples of its counterpart's client that have not been asked about. Samples of a class that has no outsider left are
  asked about no more. Where labels are numbers, outsiders are drawn at random.
- No sample is a candidate twice, in whatever rounds: clients come back to their samples, and there are fewer outsiders
  than samples, so that the number of times that a candidate recurs would tell.
- No candidate is one of the attacker's own samples, member or not.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
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


Sample = tuple[Tensor, Tensor]
"""Inputs [n, *input_shape] and labels [n]."""


def draw_questions(
    problem: Problem,
    held: Mapping[int, Sample],
    outsiders: Tensor,
    truths: Sequence[tuple[Sequence[int], Sample]],
    rng: Rng,
) -> list[Question]:
    """Draw a question for each observation, with k members and k outsiders, shuffled.

    k is the number of samples behind the observation that have not been asked about, as long as there are outsiders of
    their classes. These are shared out evenly: k is at most ⌈outsiders left/observations left⌉.

    Args:
        held: client → the samples that it draws its batches from and that may be asked about.
        outsiders: indices of the held-out samples that may be asked about.
        truths: for each observation its clients, and the samples behind it.
    """
    order = outsiders.cpu()[torch.randperm(len(outsiders), generator=rng.child("outsiders").torch())]
    lot = _Lot(problem, held, order)
    questions = []
    for i, (clients, truth) in enumerate(truths):
        most = -(-lot.left // (len(truths) - i))
        generator = rng.child("question", i).torch()
        questions.append(_question(problem, truth, lot.pairs(clients, truth, most, generator), generator))
    return questions


class _Lot:
    """Who has not been asked about.

    Attributes:
        unasked: client → label → keys of its samples.
        waiting: label → outsiders, in the order in which they are taken from the end.
    """

    def __init__(self, problem: Problem, held: Mapping[int, Sample], outsiders: Tensor) -> None:
        self.problem = problem
        self.unasked: dict[int, dict[object, set[bytes]]] = {}
        for client, (x, y) in held.items():
            self.unasked[client] = defaultdict(set)
            for key, label in zip(_keys(x), self.labels(y), strict=True):
                self.unasked[client][label].add(key)
        self.waiting: dict[object, list[int]] = defaultdict(list)
        labels = self.labels(problem.y_test[outsiders.to(problem.device)])
        for at, label in zip(outsiders.tolist(), labels, strict=True):
            self.waiting[label].append(at)

    def labels(self, y: Tensor) -> list[object]:
        """The classes; where labels are numbers, one class for all."""
        return list(y.tolist()) if self.problem.task.n_classes else [None] * len(y)

    @property
    def left(self) -> int:
        """The number of outsiders that wait."""
        return sum(map(len, self.waiting.values()))

    def pairs(
        self, clients: Sequence[int], truth: Sample, most: int, generator: torch.Generator
    ) -> list[tuple[int, int]]:
        """Members, by their place in `truth`, with outsiders. Both are then asked about no more."""
        keys, labels = _keys(truth[0]), self.labels(truth[1])
        pairs: list[tuple[int, int]] = []
        for i in torch.randperm(len(labels), generator=generator).tolist():
            owner = next((c for c in clients if keys[i] in self.unasked[c][labels[i]]), None)
            if owner is None or not self.waiting[labels[i]] or len(pairs) == most:
                continue
            pairs.append((i, self._outsider(owner, generator)))
            for client in clients:
                self.unasked[client][labels[i]].discard(keys[i])
        return pairs

    def _outsider(self, client: int, generator: torch.Generator) -> int:
        """An outsider, its class drawn with the shares of the client's samples that may still be asked about."""
        shares = {label: len(keys) for label, keys in self.unasked[client].items() if keys and self.waiting[label]}
        drawn = torch.multinomial(torch.tensor(list(shares.values()), dtype=torch.float64), 1, generator=generator)
        return self.waiting[list(shares)[int(drawn)]].pop()


def _keys(x: Tensor) -> list[bytes]:
    """What tells samples apart: a hash of their inputs."""
    return [hashlib.blake2b(row.tobytes(), digest_size=16).digest() for row in x.cpu().numpy()]


def _question(
    problem: Problem, truth: Sample, pairs: Sequence[tuple[int, int]], generator: torch.Generator
) -> Question:
    x, y = truth
    inside, outside = torch.tensor(pairs, dtype=torch.int64, device=problem.device).reshape(-1, 2).unbind(1)
    order = torch.randperm(2 * len(pairs), generator=generator).to(problem.device)
    held = problem.x_test[outside].float() / problem.scale
    candidates = Candidates(torch.cat([x[inside], held])[order], torch.cat([y[inside], problem.y_test[outside]])[order])
    return Question(candidates, order < len(pairs))
