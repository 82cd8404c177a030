"""Membership scores from a comparison of what each candidate alone would have given with what was seen."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import torch
from torch import Tensor

from fedarena.contracts.inference import GoalName, Inference, Progress, Scores, Watch
from fedarena.contracts.observation import Observation
from fedarena.contracts.view import View
from fedarena.core.rng import Rng
from fedarena.core.tensors import flatten, same_names
from fedarena.core.threat import NotApplicable
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import targets


class Compare(Inference):
    """Subclasses write `alike`, and `reason` if they cannot read every observation."""

    goal: ClassVar[GoalName] = "membership"

    def watch(self, schedule: Schedule) -> Watch:
        return Watch.opening(self.options.rounds, schedule)

    def run(self, view: View, rng: Rng, progress: Progress) -> list[Scores] | NotApplicable:
        scores = []
        for i, seen in enumerate(view.observations):
            target = flatten(seen.target)
            if reason := self.reason(target):
                return NotApplicable(reason)
            # All candidates of an observation have the same stream, so that random draws do not distinguish them.
            stream, owns = rng.child("compare", i), own(seen, view.n_classes)
            scores.append(Scores(target.new_tensor([self.alike(a, target, stream) for a in owns])))
            progress((i + 1) / len(view.observations), f"round {seen.round}")
        return scores

    def reason(self, target: Tensor) -> str:
        """Why a target cannot be compared with anything; empty if it can."""
        return ""

    @abstractmethod
    def alike(self, a: Tensor, target: Tensor, rng: Rng) -> float:
        """The similarity of a candidate's own vector and the one seen, both [d]."""


def own(seen: Observation, n_classes: int) -> list[Tensor]:
    """a(x) [d] of every candidate: what a batch of nothing but the candidate would have given.

    A simulator takes as many samples as there are behind the observation, so it gets that many copies of the candidate;
    the mean over copies is the candidate's own.
    """
    candidates, names = seen.candidates, tuple(seen.target)
    assert candidates is not None, "the harness gives candidates to an attack whose goal is membership"
    labels = targets(candidates.y, n_classes, candidates.x)

    def alone(x: Tensor, y: Tensor) -> Tensor:
        copies = x.expand(seen.images, *x.shape), y.expand(seen.images, *y.shape)
        return flatten(same_names(seen.simulate(*copies), names)).detach()

    with torch.no_grad():
        return [alone(x, y) for x, y in zip(candidates.x, labels, strict=True)]
