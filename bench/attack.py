"""What an attack is: a function of its view that returns a guess. It never judges itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

from torch import Tensor

from fedarena.rng import Rng
from fedarena.schedule import Schedule
from fedarena.threat import NotApplicable
from fedarena.view import View, seal

Progress = Callable[[float, str], None]
"""Called with the share done in [0, 1] and a short text."""


@dataclass(frozen=True)
class Watch:
    """Which rounds an attack wants to be written down.

    Attributes:
        first: first round.
        last: last round, inclusive.
        victims: the rounds within them whose uploads it will attack.
    """

    first: int
    last: int
    victims: tuple[int, ...]


@dataclass(frozen=True)
class Reconstruction:
    """A guess at the samples behind one observation.

    Attributes:
        images: [n, *input_shape]; the harness clips them to the valid range before it scores.
        labels: [n] (int64).
        match: the attacker's own distance, by which it chose among restarts (not a score).
        evaluations: gradient evaluations spent.
    """

    images: Tensor
    labels: Tensor
    match: float
    evaluations: int


Guess = list[Reconstruction]
"""One entry per observation of the view, in order."""


class Inference(ABC):
    """An attack that reads a view and guesses something private.

    Subclasses write `run`, and `watch` if the first rounds are not what they want. A complete one:

        class MeanImage(Inference):
            def run(self, view, rng, progress):
                grey = torch.full(view.input_shape, 0.5)
                return [
                    Reconstruction(grey.expand(o.images, *grey.shape), torch.zeros(o.images, dtype=torch.long), 0.0, 0)
                    for o in view.observations
                ]
    """

    knows_labels: bool = False
    """Whether the attack is told the victims' labels; shown wherever its results are."""

    def __init__(self, options: Any) -> None:
        self.options = options

    def watch(self, schedule: Schedule) -> Watch:
        """The rounds to be written down; by default the first one."""
        return Watch(0, 0, (0,))

    @final
    def __call__(self, view: View, rng: Rng, progress: Progress = lambda share, text: None) -> Guess | NotApplicable:
        """Run on a sealed copy of the view."""
        return self.run(seal(view), rng, progress)

    @abstractmethod
    def run(self, view: View, rng: Rng, progress: Progress) -> Guess | NotApplicable:
        """The attack itself."""
