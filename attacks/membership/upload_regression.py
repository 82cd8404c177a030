"""Regression of uploads: which candidates is what was seen made of?

An upload is the mean of what its samples give: v = (1/b) Σ_{x in batch} a(x). Samples of a class give much alike. So v
points along the contributions of members and outsiders nearly equally, and its cosine with each tells them apart badly.
A regression on all of them at once does not confuse them:

    w = argmin_w ‖v − Σ_x w(x) a(x)‖² + λ‖w‖² = (A Aᵀ + λ I)⁻¹ A v

with v and the rows a(x) of A scaled to length 1, as protocols scale both. The score of a candidate is the sum of w(x)
over all that was seen of the client that it is asked about. Samples that come back in many rounds stand out, and a
round that says nothing adds nothing but noise. As a protocol may treat clients differently, the scores of each client
are brought to one scale.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from fedarena.attacks.membership.cards.upload_regression import Options
from fedarena.attacks.membership.helpers.contributions import asked_about, contributions
from fedarena.contracts.inference import GoalName, Inference, Progress, Scores, Watch
from fedarena.contracts.view import View
from fedarena.core.rng import Rng
from fedarena.core.tensors import flatten
from fedarena.core.threat import NotApplicable
from fedarena.problem.schedule import Schedule


class UploadRegression(Inference):
    """The attack; see the module's docstring."""

    goal: ClassVar[GoalName] = "client-membership"
    options: Options

    def watch(self, schedule: Schedule) -> Watch:
        return Watch.throughout(self.options.rounds, schedule)

    def run(self, view: View, rng: Rng, progress: Progress) -> list[Scores] | NotApplicable:
        candidates = view.candidates
        assert candidates is not None, "the harness gives candidates"
        total = torch.zeros(len(candidates.y), dtype=torch.float64, device=candidates.y.device)
        for i, seen in enumerate(view.observations):
            which = asked_about(seen, candidates).nonzero().squeeze(1)
            if not len(which):
                continue
            own = contributions(seen, candidates, which, view.n_classes)
            total[which] += coefficients(own, flatten(seen.target).double(), self.options.ridge)
            progress((i + 1) / len(view.observations), f"round {seen.round}")
        return [Scores(to_one_scale(total, candidates.clients))]


def to_one_scale(scores: Tensor, clients: Tensor | None) -> Tensor:
    """The scores [m] with a mean square of 1 over each client's candidates; zeros stay zeros."""
    assert clients is not None, "candidates of a client's data set name the client"
    groups = clients.unique(return_inverse=True)[1]
    squares = torch.zeros_like(scores).scatter_reduce(0, groups, scores.square(), "mean", include_self=False)[groups]
    return torch.where(squares > 0, scores / squares.sqrt(), 0.0)


def coefficients(own: Tensor, target: Tensor, ridge: float) -> Tensor:
    """w [m] of contributions [m, d] and what was seen [d]; a vector of length 0 says nothing."""
    own, target = unit(own), unit(target)
    gram = own @ own.T
    weights: Tensor = torch.linalg.solve(gram + ridge * torch.eye(len(gram)).to(gram), own @ target)
    return weights


def unit(vectors: Tensor) -> Tensor:
    """The vectors [..., d] at length 1; those of length 0 stay as they are."""
    lengths = vectors.norm(dim=-1, keepdim=True)
    return torch.where(lengths > 0, vectors / lengths, 0.0)
