"""Model extraction: the party takes the model that it reads off the broadcast.

A federation sends its model to every client in every round, so that stealing it needs no queries. (Tramèr et al. 2016,
who coined the word, had nothing but predictions.) The protocol decides how much of the model a broadcast shows, and
the view holds the model that the party derives from it (`fedarena.contracts.observation.Disclosure`). This attack does
nothing more, such as training on its own data.
"""

from __future__ import annotations

from typing import ClassVar

from fedarena.attacks.extraction.cards.model_extraction import Options
from fedarena.contracts.inference import Extraction, GoalName, Inference, Progress, Watch
from fedarena.contracts.view import View
from fedarena.core.rng import Rng
from fedarena.problem.schedule import Schedule


class ModelExtractionAttack(Inference):
    """The attack; see the module's docstring."""

    options: Options
    goal: ClassVar[GoalName] = "extraction"

    def watch(self, schedule: Schedule) -> Watch:
        """`rounds` rounds spread evenly over the training, the last one among them; all of a shorter training."""
        total, count = schedule.rounds, min(self.options.rounds, schedule.rounds)
        looked_at = tuple((i + 1) * total // count - 1 for i in range(count))
        return Watch(max(0, looked_at[0] - self.options.history), looked_at[-1], looked_at, (self.options.history, 0))

    def run(self, view: View, rng: Rng, progress: Progress) -> list[Extraction]:
        return [Extraction(disclosure.params) for disclosure in view.disclosures]
