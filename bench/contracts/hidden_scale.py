"""The contract of protocols whose server scales a model's units by factors that clients cannot know or check.

Scaled units compute the same function. Yet a client's gradient by the first layer is the larger, the smaller that
layer's units were made. So a server that sends clients different factors makes one of them loud and the others faint:

    ∂L/∂(r W) = (1/r) ∂L/∂W
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from fedarena.contracts.defense import Broadcast, State
from fedarena.core.rng import Rng


class HiddenScale(ABC):
    """A defense derives from this class besides `fedarena.contracts.defense.Defense`."""

    @abstractmethod
    def scaled(self, state: State, loudness: float, rng: Rng) -> Broadcast:
        """A broadcast of the server's model, under which a client's gradient by the first layer is `loudness` times
        that of the plain model."""

    @property
    @abstractmethod
    def unscaled(self) -> tuple[str, ...]:
        """The names of all else, in an upload and in a gradient: what does not grow and shrink with it."""
