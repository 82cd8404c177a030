"""The contract of secure aggregation: the server learns the sum of n vectors, and none of them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from fedarena.core.contract import inherit_together
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng


class TooFewSurvivors(UserError):
    """The round fails, because too many clients dropped out for the sum to be unmasked.

    Attributes:
        bytes_up, bytes_down: bytes sent until then by all participants together, without the broadcast.
    """

    bytes_up: float = 0.0
    bytes_down: float = 0.0


class TooLarge(UserError):
    """A value is beyond what clients can send: the bound is too small for the protocol, or the run diverges."""


@dataclass(frozen=True)
class Exchange:
    """One round of secure summation.

    Attributes:
        wire: [clients, d], what each participant sent in place of its vector, in the order of the participants:
            integers modulo a power of two in two's complement, or floats. A row of zeros: the client dropped out.
            None: the sum was made without messages.
        total: [d], Σ over the survivors of the vectors, of the vectors' dtype; what the server learns.
        survivors: positions of those whose vectors are in the total, in ascending order.
        extra_up, extra_down: mean bytes per participant that are not in `wire`: keys, encrypted shares, lists of
            clients, unmasking.
    """

    wire: Tensor | None
    total: Tensor
    survivors: tuple[int, ...]
    extra_up: float
    extra_down: float


class SecureSum(ABC):
    """A way to sum vectors so that the server sees none of them.

    Keys, shares and masks are drawn from the `rng` of a call alone. The same `rng` gives the same masks, so that every
    round needs its own. A deployment draws them from the operating system.
    """

    besides: ClassVar[str] = "keys and shares"
    """A text that names what is sent besides the broadcast and the masked upload."""

    def __new__(cls, *given: Any, **named: Any) -> Self:
        """An object that makes its own sums, and no faster ones of another protocol's that it inherits."""
        inherit_together(cls, SecureSum, "__call__", ("without_messages",))
        return super().__new__(cls)

    def __init__(self, options: Any) -> None:
        self.options = options

    def check(self, n: int) -> None:
        """Raise UserError for a number of participants with which it cannot work."""
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
        """Raise UserError for vectors, as `__call__` takes them, that rounding would turn into zeros."""
        return

    @abstractmethod
    def __call__(self, vectors: Tensor, rng: Rng) -> Exchange:
        """Sum rows. vectors: [clients, d] of floats, already weighted by N_c/N.

        Raises:
            TooLarge: values that cannot be sent as the options say. TooFewSurvivors: the round failed.
        """

    def without_messages(self, vectors: Tensor, rng: Rng) -> Exchange:
        """The same sum, survivors, bytes and errors; a protocol whose messages take long may leave them out here.

        For rounds of which nobody reads the messages, nor how long they take.
        """
        return self(vectors, rng)


def require_two(method: str, n: int) -> None:
    """Raise UserError for fewer than two participants, whose sum would be the vector itself."""
    if n < 2:
        raise UserError(
            f"secure {method}: {n} participants a round, allowed: 2 or more, since a sum of one hides nothing "
            "(see --clients, --participation)"
        )
