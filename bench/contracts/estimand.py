"""The quantity that a party estimates, and how its true value is computed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from fedarena.core.tensors import Tensors


class Estimand(ABC):
    """The quantity that `Observation.estimate` estimates, in the plain model's parameters.

    If the parties of a protocol can only estimate another quantity, the protocol defines a subclass. Subclasses are
    frozen dataclasses that hold public facts alone, because attacks see them.
    """

    name: ClassVar[str]
    """How it is printed."""
    gradient: ClassVar[bool]
    """Whether it is a gradient; else it is an update."""
    canonical: ClassVar[bool] = False
    """Whether it is taken in a canonical form, because parties do not know how the protocol scales hidden units."""

    @abstractmethod
    def truth(self, before: Tensors, after: Tensors, gradient: Callable[[], Tensors]) -> Tensors:
        """The true value.

        Args:
            before, after: the server's parameters W_t and W_{t+1}.
            gradient: computes the plain gradient at W_t of the samples behind the observation.
        """


@dataclass(frozen=True)
class TrueGradient(Estimand):
    """The gradient of the samples at the server's parameters W_t."""

    name = "gradient"
    gradient = True

    def truth(self, before: Tensors, after: Tensors, gradient: Callable[[], Tensors]) -> Tensors:
        return gradient()


@dataclass(frozen=True)
class TrueUpdate(Estimand):
    """The server's update W_t − W_{t+1}."""

    name = "update"
    gradient = False

    def truth(self, before: Tensors, after: Tensors, gradient: Callable[[], Tensors]) -> Tensors:
        return {name: p - after[name] for name, p in before.items()}


GRADIENT, UPDATE = TrueGradient(), TrueUpdate()
