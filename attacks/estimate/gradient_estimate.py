"""The gradient, as far as what was seen tells it: how good is the estimate that attacks begin with?

    cos(ĝ, g)     ‖ĝ − g‖/‖g‖     round by round

What a party makes of the wire before it searches for anything is in the view
(`fedarena.contracts.observation.Observation.estimate`), and is the answer: options I and II of DBCL's clients and the
smoother, BAFFLE's Stein estimate, PBPFL's Eq. 19. DBCL measures it so in its Section 6.3 and Figure 3, from which its
reader is to conclude that no attack can follow.

An estimate is judged as what it is of (`Observation.estimate_of`). Where a protocol leaves a symmetry that nobody but
its server could resolve, and that no network's function depends on, the truth is taken in the same canonical form:
PBPFL's R is no part of the gradient at C(W_t), nor of the update C(W_t) − C(W_{t+1}). What the masking really hides, γ,
is not corrected for: an error of γ̂ counts. In the paper's form nothing is, since its attacker knows of no symmetry.
"""

from __future__ import annotations

from typing import ClassVar

from fedarena.attacks.estimate.cards.gradient_estimate import Options
from fedarena.attacks.helpers.victims import spread
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
        return spread("gradient-estimate", o.rounds, o.start, o.window, schedule)

    def run(self, view: View, rng: Rng, progress: Progress) -> list[GradientEstimate] | NotApplicable:
        found = [GradientEstimate(o.estimate) for o in view.observations if o.estimate is not None]
        if len(found) < len(view.observations):
            return NotApplicable("not every observation comes with an estimate")
        return found
