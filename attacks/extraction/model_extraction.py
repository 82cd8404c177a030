"""Model extraction by reading the broadcast: what a party makes of it is the model that it takes.

A federation hands its model to every client in every round, so that taking it needs no queries (Tramèr et al. 2016,
who coined the field's word, had nothing but predictions to go by). How far a broadcast gives the model away is the
protocol's doing; what can be made of it is in the view (`fedarena.contracts.observation.Disclosure`), and nothing is
added to that here, such as training on own data.
"""

from __future__ import annotations

from typing import ClassVar

from fedarena.attacks.extraction.cards.model_extraction import Options
from fedarena.contracts.inference import Extraction, GoalName, Inference, Progress, Watch
from fedarena.contracts.view import View
from fedarena.core.rng import Rng
from fedarena.problem.schedule import Schedule


class ModelExtraction(Inference):
    """The attack; see the module's docstring."""

    options: Options
    goal: ClassVar[GoalName] = "extraction"

    def watch(self, schedule: Schedule) -> Watch:
        """`rounds` rounds spread evenly over the training, the last one among them; all of a shorter training."""
        total, count = schedule.rounds, min(self.options.rounds, schedule.rounds)
        looked_at = tuple((i + 1) * total // count - 1 for i in range(count))
        return Watch(max(0, looked_at[0] - self.options.history), looked_at[-1], looked_at, self.options.history)

    def run(self, view: View, rng: Rng, progress: Progress) -> list[Extraction]:
        return [Extraction(disclosure.params) for disclosure in view.disclosures]
