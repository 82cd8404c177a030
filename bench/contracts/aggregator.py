"""What an aggregation rule is: n vectors → one. Any protocol can take any rule."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from torch import Tensor

from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.core.text.plural import plural


@dataclass(frozen=True)
class Call:
    """What a rule is given beside the vectors.

    Attributes:
        weights: [n], N_c of the senders. No rule here uses them, since a corrupted sender may claim any number.
        f: how many of the n the server assumes to be corrupted. The true number may differ.
        memory: what the rule returned after its last round; {} at first.
        rng: the rule's randomness of this round.
        reference: [d], the upload that the server's own auxiliary data give, computed when called; for rules
            that declare `auxiliary` and None for the others.
    """

    weights: Tensor
    f: int
    memory: Tensors
    rng: Rng
    reference: Callable[[], Tensor] | None = None


@dataclass(frozen=True)
class Aggregate:
    """What a rule returns.

    Attributes:
        vector: [d].
        used: [n] ≥ 0, the weight of each row in `vector`; None for rules that have no such thing (those that
            work coordinate by coordinate).
        memory: handed back in the next round.
        votes: for rules that change the lengths of rows, the weight of each row at the length that the rule gives
            it (`used` shrinks as a row grows, though its part in `vector` does not). None: the same as `used`.
    """

    vector: Tensor
    used: Tensor | None
    memory: Tensors = field(default_factory=dict)
    votes: Tensor | None = None

    @property
    def weight(self) -> Tensor | None:
        """What records call the weight of an upload: `votes`, or else `used`."""
        return self.used if self.votes is None else self.votes

    def through(self, mixing: Tensor) -> Aggregate:
        """The same with weights of the rows x where they were of the rows mixing·x; mixing: [m, n]."""
        used, votes = (None if w is None else w @ mixing.to(w) for w in (self.used, self.votes))
        return replace(self, used=used, votes=votes)


class Aggregator(ABC):
    """A rule that turns n uploads into one vector, without knowing who is corrupted.

    Permuting the rows permutes `used` and leaves `vector` as it is (up to rounding; rules that draw at random:
    in law). A complete one:

        class Mean(Aggregator):
            def __call__(self, x, call):
                share = call.weights / call.weights.sum()
                return Aggregate(share @ x, share)
    """

    unanimous: ClassVar[bool] = False
    """Whether uploads that are all the same are what it gives, in every round."""

    def __init__(self, options: Any) -> None:
        self.options = options

    @property
    def auxiliary(self) -> int:
        """Samples per class that the server must hold for `Call.reference`; 0: none."""
        return 0

    @property
    def auxiliary_option(self) -> str:
        """Which option says how many these are; "" where none does."""
        return ""

    def check(self, n: int, f: int) -> None:
        """Refuse numbers of uploads and corrupted ones that the rule is not defined for. Raises UserError."""
        return

    def averages(self, n: int, f: int) -> bool:
        """Whether it is the plain mean of n uploads, whatever they are, so that it hides no more than a mean does."""
        return False

    def picks(self, n: int, f: int) -> bool:
        """Whether it is one of n uploads, whole, the one whose `used` is greatest: then every client is sent it."""
        return False

    @abstractmethod
    def __call__(self, x: Tensor, call: Call) -> Aggregate:
        """Aggregate rows. x: [n, d], finite."""


class Wrapper(Aggregator):
    """A rule that prepares the uploads and hands them to another rule."""

    def __init__(self, options: Any, inner: Aggregator) -> None:
        super().__init__(options)
        self.inner = inner

    @property
    def auxiliary(self) -> int:
        return self.inner.auxiliary

    @property
    def auxiliary_option(self) -> str:
        return self.inner.auxiliary_option

    def check(self, n: int, f: int) -> None:
        self.inner.check(n, f)


def require(holds: bool, rule: str, n: int, f: int, needs: str) -> None:
    """Raise UserError unless a rule's condition on n and f holds."""
    if not holds:
        raise UserError(
            f"aggregator {rule}: {plural(n, 'upload')} a round of which {f} are assumed to be corrupted, allowed: "
            f"{needs} (see --clients, --assumed-corrupted, --participation)"
        )
