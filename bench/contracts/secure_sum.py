"""What secure aggregation is: n vectors → their sum, and no vector to the server. Any protocol can take it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from fedarena.core.errors import UserError
from fedarena.core.rng import Rng


class TooFewSurvivors(UserError):
    """So many clients dropped out of a round that the sum cannot be unmasked: the round fails.

    Attributes:
        bytes_up, bytes_down: what had crossed by then, all participants together, the broadcast not.
    """

    bytes_up: float = 0.0
    bytes_down: float = 0.0


class TooLarge(UserError):
    """A value beyond what clients can send: a bound that is too small for the protocol, or a run that diverges."""


@dataclass(frozen=True)
class Exchange:
    """What one round of secure summation was.

    Attributes:
        wire: [clients, d], what each participant sent in place of its vector, in the order of the participants:
            integers modulo a power of two in two's complement, or floats. A row of zeros: it dropped and sent nothing.
        total: [d], Σ over the survivors of the vectors, of the vectors' dtype; what the server learns.
        survivors: positions of those whose vectors are in the total, in ascending order.
        extra_up, extra_down: mean further bytes per participant, counted from the messages: keys, encrypted
            shares, lists of clients, unmasking.
    """

    wire: Tensor
    total: Tensor
    survivors: tuple[int, ...]
    extra_up: float
    extra_down: float


class SecureSum(ABC):
    """A way to sum vectors so that the server sees none of them.

    Keys, shares and masks are drawn from the `rng` of a call and from nothing else: the same `rng` replays the
    same masks, so that every round must be given its own. A deployment draws them from the operating system.
    """

    besides: ClassVar[str] = "keys and shares"
    """What it sends besides the broadcast and the masked upload."""

    def __init__(self, options: Any) -> None:
        self.options = options

    def check(self, n: int) -> None:
        """Refuse numbers of participants that cannot work. Raises UserError."""
        return

    @property
    def repeat(self) -> int:
        """How many equal parts of a vector share one mask; 1: every coordinate has its own."""
        return 1

    @property
    def spread(self) -> float:
        """Standard deviation of what a message adds to its vector's entries; infinity: messages are uniform."""
        return math.inf

    def rounding(self, n: int, dtype: torch.dtype) -> float:
        """Standard deviation of a coordinate's error in the total of n vectors of that type; 0: exact."""
        return 0.0

    @property
    def limit(self) -> float:
        """The largest |value| that a client can send."""
        return math.inf

    def require_room(self, vectors: Tensor) -> None:
        """Refuse vectors, like `__call__`'s, of which rounding would leave nothing. Raises UserError."""
        return

    @abstractmethod
    def __call__(self, vectors: Tensor, rng: Rng) -> Exchange:
        """Sum rows. vectors: [clients, d] of floats, already weighted by N_c/N.

        Raises:
            TooLarge: values that cannot be sent as the options say. TooFewSurvivors: the round failed.
        """


def require_company(method: str, n: int) -> None:
    """Raise UserError for fewer than two participants, whose sum would be the vector itself."""
    if n < 2:
        raise UserError(
            f"secure {method}: {n} participants a round, allowed: 2 or more, since a sum of one hides nothing "
            "(see --clients, --participation)"
        )
