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
from fedarena.errors import UserError
from fedarena.rng import Rng
from fedarena.schedule import Schedule
from fedarena.threat import NotApplicable
from fedarena.view import View


class GradientEstimates(Inference):
    """The attack; see the module's docstring."""

    options: Options
    goal: ClassVar[GoalName] = "estimate"

    def watch(self, schedule: Schedule) -> Watch:
        """`rounds` rounds spread evenly from `start` over the window; its last round is never one of them, because a
        client learns an update from the broadcast that follows it."""
        o = self.options
        if o.start >= schedule.rounds:
            raise UserError(
                f"attack gradient-estimate: option 'start' is {o.start}, allowed: at most {schedule.rounds - 1} with "
                f"{schedule.rounds} rounds"
            )
        last = min(o.start + o.window, schedule.rounds) - 1
        usable = max(1, last - o.start)
        count = min(o.rounds, usable)
        return Watch(o.start, last, tuple(o.start + i * usable // count for i in range(count)))

    def run(self, view: View, rng: Rng, progress: Progress) -> list[GradientEstimate] | NotApplicable:
        found = [GradientEstimate(o.estimate) for o in view.observations if o.estimate is not None]
        if len(found) < len(view.observations):
            return NotApplicable("not every observation comes with an estimate")
        return found
