"""The gradient, as far as what was seen tells it: how good is the estimate that attacks begin with?

    cos(ĝ, g)     ‖ĝ − g‖/‖g‖     round by round

What a party makes of the wire before it searches for anything is in the view (`fedarena.view.Observation.estimate`),
and is the answer: options I and II of DBCL's clients and the smoother, BAFFLE's Stein estimate, PBPFL's Eq. 19. DBCL
measures it so in its Section 6.3 and Figure 3, from which its reader is to conclude that no attack can follow.
"""

from __future__ import annotations

from typing import ClassVar

from fedarena.attack import GoalName, GradientEstimate, Inference, Progress, Watch
from fedarena.attacks.cards.gradient_estimate import Options
from fedarena.attacks.victims import spread
from fedarena.rng import Rng
from fedarena.schedule import Schedule
from fedarena.threat import NotApplicable
from fedarena.view import View


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
