"""Gradient estimate: how near to the gradient is the estimate that other attacks begin with?

    cos(ĝ, g)     ‖ĝ − g‖/‖g‖     round by round

The attack searches for nothing. Its answer is what the view holds already
(`fedarena.contracts.observation.Observation.estimate`): options I and II of DBCL's clients and the smoother, BAFFLE's
Stein estimate, PBPFL's Eq. 19. DBCL's paper measures these in Section 6.3 and Figure 3, and concludes from them that no
attack can follow.

`Observation.estimate_of` says what an estimate is compared with. Some protocols leave a symmetry that only the server
could resolve and on which no network's function depends. Then the truth is taken in the same canonical form: PBPFL's R
is no part of the gradient at C(W_t), nor of the update C(W_t) − C(W_{t+1}). What its masking really hides, γ, is not
corrected for, so that an error of γ̂ counts. In the paper's form nothing is corrected, because its attacker uses no
symmetry.
"""

from __future__ import annotations

from typing import ClassVar

from fedarena.attacks.estimate.cards.gradient_estimate import Options
from fedarena.contracts.inference import GoalName, GradientEstimate, Inference, Progress, Watch
from fedarena.contracts.view import View
from fedarena.core.rng import Rng
from fedarena.core.threat import NotApplicable
from fedarena.problem.schedule import Schedule


class GradientEstimates(Inference):
    """The attack; see the module's docstring."""

    options: Options
    goal: ClassVar[GoalName] = "estimate"

    def watch(self, schedule: Schedule) -> Watch:
        o = self.options
        return Watch.spread("gradient-estimate", o.rounds, o.start, o.window, schedule)

    def run(self, view: View, rng: Rng, progress: Progress) -> list[GradientEstimate] | NotApplicable:
        estimates = [GradientEstimate(o.estimate) for o in view.observations if o.estimate is not None]
        if len(estimates) < len(view.observations):
            return NotApplicable("not every observation comes with an estimate")
        return estimates
