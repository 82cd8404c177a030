"""Membership inference: which candidates were in the training set of a released model? (Carlini et al. 2022; Yeom et
al. 2018)

Models are more confident on samples that they were trained on. With p_y the model's confidence in a candidate's own
label, the measure of it is

    φ = log p_y/(1 − p_y)                              (Carlini et al., logit scaling)

which is close to normally distributed over models. Where a model is not trained for confidences, φ is −log of the loss.

    loss    The score is φ. It orders candidates as minus the cross-entropy, −log p_y, does, and separates values that
            round to 0.
    lira    The score is (φ − μ)/σ. μ is the mean of the candidate's φ over shadow models, none of which was trained on
            it. σ is their standard deviation, one for all candidates or each candidate's own. The authors' score
            1 − Pr[Z > φ], Z ~ N(μ, σ²), rises with it.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from fedarena.attacks.membership.cards.membership_inference import Options
from fedarena.attacks.membership.helpers.shadows import shadows
from fedarena.contracts.final_model import Predictor
from fedarena.contracts.inference import GoalName, Inference, Progress, Scores, Watch
from fedarena.contracts.observation import Candidates
from fedarena.contracts.view import View
from fedarena.core.rng import Rng
from fedarena.core.threat import NotApplicable
from fedarena.problem.schedule import Schedule

TINY = torch.finfo(torch.float64).tiny


class MembershipInference(Inference):
    """The attack; see the module's docstring."""

    goal: ClassVar[GoalName] = "training-membership"
    options: Options

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.needs_population = options.statistic == "lira"

    def watch(self, schedule: Schedule) -> Watch:
        """No round: the attack reads only the final model."""
        return Watch(0, -1, ())

    def run(self, view: View, rng: Rng, progress: Progress) -> list[Scores] | NotApplicable:
        candidates = view.candidates
        assert view.model is not None
        assert candidates is not None, "the harness gives a model and candidates"
        sure = sureness(view.model, candidates)
        if self.options.statistic == "loss":
            if view.threat.form == "adaptive":
                return NotApplicable("a loss threshold trains no shadows, through the protocol or otherwise")
            return [Scores(sure)]
        assert view.population is not None
        assert view.protocol is not None
        assert view.initial is not None, "and for shadows samples and the protocol"
        plain, count = view.threat.form == "paper", self.options.shadows
        trained = shadows(view.protocol, view.initial, view.population, count, plain, rng, progress)
        out = [sureness(shadow, candidates) for shadow in trained]
        if len(out) < 2:
            return NotApplicable(f"{len(out)} of {count} shadow models ended with finite parameters; two are needed")
        return [Scores(surprise(sure, torch.stack(out), self.options.variance == "example"))]


@torch.no_grad()
def sureness(model: Predictor, candidates: Candidates) -> Tensor:
    """φ of every candidate, [m] (float64); see the module's docstring. p_y/(1 − p_y) is taken as p_y/Σ_{k≠y} p_k."""
    out, criterion = model.confidences(candidates.x), model.task.criterion
    if criterion.loss != "cross-entropy":
        return -criterion.each(out, candidates.y).clamp(min=TINY).log()
    label = candidates.y[:, None]
    own, others = out.gather(1, label).squeeze(1), out.scatter(1, label, 0.0).sum(1)
    return own.clamp(min=TINY).log() - others.clamp(min=TINY).log()


def surprise(sure: Tensor, out: Tensor, own_variance: bool) -> Tensor:
    """(φ − μ)/σ of every candidate.

    Args:
        sure: φ of the model attacked, [m].
        out: φ of the shadows, [shadows, m].
        own_variance: σ² is a candidate's own; else the mean of all of them.
    """
    variance = out.var(0) if own_variance else out.var(0).mean()
    return (sure - out.mean(0)) / variance.sqrt().clamp(min=TINY)
