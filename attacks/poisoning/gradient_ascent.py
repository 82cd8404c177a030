"""Gradient ascent: every colluder follows the protocol on the loss −k·L in place of L.

    ȳ = −k · one-hot(y)

Cross-entropy is linear in the target: −Σ_c ȳ_c log softmax(f)_c = −k·L, whose gradient is −k times that of L. So the
step is the protocol's own, with labels that are no probabilities. Whatever the client step adds to an upload, such as
noise, a mask or a code that the server checks, is added to this one, too.
"""

from __future__ import annotations

from fedarena.attacks.poisoning.cards.gradient_ascent import Options
from fedarena.contracts.poisoning import Poisoning
from fedarena.core.rng import Rng
from fedarena.problem.task import Batch, targets


class GradientAscent(Poisoning):
    """The attack; see the module's docstring and `fedarena.attacks.poisoning.cards.gradient_ascent.Options`."""

    options: Options
    tunes = {"scale": (0.5, 1.0, 2.0, 4.0, 10.0, 50.0)}  # noqa: RUF012  (a ClassVar of the base)

    def batch(self, batch: Batch, round: int, client: int, rng: Rng) -> Batch:
        classes = self.knowledge.task.n_classes
        return Batch(batch.x, -self.options.scale * targets(batch.y, classes, batch.x))
