"""The contract of aggregation rules, which make one vector of n. Any protocol can take any rule."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any, ClassVar

from torch import Tensor

from fedarena.core.errors import UserError, place_of
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, kind_of, plain_like
from fedarena.core.text.numbers import plural


@dataclass(frozen=True)
class Call:
    """What a rule gets besides the vectors.

    Attributes:
        weights: [n], N_c of the senders. No rule here uses them, because a corrupted sender may claim any number.
        f: how many of the n the server assumes to be corrupted. The true number may differ.
        memory: what the rule returned in the last round; {} at first.
        rng: the rule's randomness of this round.
        reference: computes the upload that the server's own data give, [d]. It is None unless the rule declares
            `auxiliary`.
        senders: [n], the numbers of the clients that sent the rows. (): row i is from client i.
        shapes: shapes of the tensors that a row is made of, in their order. (): one tensor [d].
    """

    weights: Tensor
    f: int
    memory: Tensors
    rng: Rng
    reference: Callable[[], Tensor] | None = None
    senders: tuple[int, ...] = ()
    shapes: tuple[tuple[int, ...], ...] = ()

    def clients(self, n: int) -> tuple[int, ...]:
        """The number of the client behind each of n rows."""
        return self.senders or tuple(range(n))


@dataclass(frozen=True)
class Aggregate:
    """What a rule returns.

    Attributes:
        vector: [d].
        used: [n] ≥ 0, the weight of each row in `vector`; None for rules without weights of rows, such as those that
            work coordinate by coordinate.
        memory: the rule gets it back in the next round.
        votes: for rules that change the lengths of rows, the weight of each row at its new length. (`used` gets smaller
            the longer a row is, although the row's part in `vector` does not.) None: the same as `used`.
    """

    vector: Tensor
    used: Tensor | None
    memory: Tensors = field(default_factory=dict)
    votes: Tensor | None = None

    @property
    def weight(self) -> Tensor | None:
        """The weight of an upload in records: `votes`, or else `used`."""
        return self.used if self.votes is None else self.votes

    def through(self, mixing: Tensor) -> Aggregate:
        """The same aggregate with the weights of rows x, if the weights here are those of mixing·x; mixing: [m, n]."""
        used, votes = (None if w is None else w @ mixing.to(w) for w in (self.used, self.votes))
        return replace(self, used=used, votes=votes)


class Aggregator(ABC):
    """A rule that turns n uploads into one vector, without knowing who is corrupted.

    Permuting the rows permutes `used` and does not change `vector`, up to rounding. For rules that draw at random this
    holds in distribution. A complete rule:

        class Mean(Aggregator):
            def __call__(self, x, call):
                share = call.weights / call.weights.sum()
                return Aggregate(share @ x, share)
    """

    unanimous: ClassVar[bool] = False
    """Whether the rule returns the common upload where all uploads are equal, in every round."""

    def __init__(self, options: Any) -> None:
        self.options = options

    @property
    def auxiliary(self) -> int:
        """Samples per class that the server must hold for `Call.reference`; 0: none."""
        return 0

    @property
    def auxiliary_option(self) -> str:
        """The option that sets this number; "" where there is none."""
        return ""

    @property
    def by_sender(self) -> bool:
        """Whether the rule remembers what each client sent, so that a row must be one client's (`Call.senders`)."""
        return False

    def check(self, n: int, f: int) -> None:
        """Raise UserError for numbers of uploads and of corrupted ones for which the rule is not defined."""
        return

    def averages(self, n: int, f: int) -> bool:
        """Whether the rule is the unweighted mean of any n uploads, so that it hides no more than a mean does."""
        return False

    def picks(self, n: int, f: int) -> bool:
        """Whether the rule returns one of n uploads, that with the largest `used`, which all clients then receive."""
        return False

    def takes_mean_of(self, n: int, f: int) -> int:
        """Of how many of n uploads the rule returns the mean, as they are or made shorter; 0: it weighs otherwise."""
        return 1 if self.picks(n, f) else 0

    @abstractmethod
    def __call__(self, x: Tensor, call: Call) -> Aggregate:
        """Aggregate rows. x: [n, d], finite."""


class Wrapper(Aggregator):
    """A rule that prepares the uploads for another rule."""

    def __init__(self, options: Any, inner: Aggregator) -> None:
        super().__init__(options)
        self.inner = inner

    def inside(self, x: Tensor, call: Call) -> Aggregate:
        """What the rule inside makes of rows. Raises UserError, with its place, where it is no aggregate."""
        return checked(self.inner(x, call), self.inner, x)

    @property
    def auxiliary(self) -> int:
        return self.inner.auxiliary

    @property
    def auxiliary_option(self) -> str:
        return self.inner.auxiliary_option

    @property
    def by_sender(self) -> bool:
        return self.inner.by_sender

    def check(self, n: int, f: int) -> None:
        self.inner.check(n, f)


def require(holds: bool, rule: str, n: int, f: int, needs: str) -> None:
    """Raise UserError unless a rule's condition on n and f holds."""
    if not holds:
        raise UserError(
            f"aggregator {rule}: {plural(n, 'upload')} a round of which {f} are assumed to be corrupted, allowed: "
            f"{needs}"
        )


def refuse_by_sender(wrapper: str, inner: Aggregator) -> None:
    """Raise UserError if the inner rule needs the clients behind the rows, which the wrapper's rows do not have."""
    if inner.by_sender:
        raise UserError(
            f"aggregator {wrapper}: the rule inside remembers what each client sent, and the rows that {wrapper} makes "
            "are not one client's, allowed: a rule without such a memory"
        )


@contextmanager
def calls_of(rule: Aggregator) -> Iterator[list[int]]:
    """How many uploads a rule was asked about, at each of its calls within the block."""
    own, calls = type(rule), list[int]()

    @wraps(own.__call__)
    def counted(self: Aggregator, x: Tensor, call: Call) -> Aggregate:
        calls.append(len(x))
        return own.__call__(self, x, call)

    said = {"__module__": own.__module__, "__qualname__": own.__qualname__}
    object.__setattr__(rule, "__class__", type(own.__name__, (own,), {**said, "__call__": counted}))
    try:
        yield calls
    finally:
        object.__setattr__(rule, "__class__", own)


def checked(returned: Any, rule: Aggregator, x: Tensor) -> Aggregate:
    """What a rule returned for the uploads x [n, d]. Raises UserError, with the rule's place, where it is no vector."""
    vector = returned.vector if isinstance(returned, Aggregate) else returned
    function = getattr(rule, "function", type(rule).__call__)
    if not isinstance(returned, Aggregate) or (plain := plain_like(vector, x[0])) is None:
        kind = "a tensor" if hasattr(rule, "function") else "an Aggregate with a vector"
        raise UserError(f"rule {place_of(function)} returned {kind_of(vector)}, allowed: {kind} {list(x.shape[1:])}")
    for name, weights in (("used", returned.used), ("votes", returned.votes)):
        if weights is not None and not (isinstance(weights, Tensor) and weights.shape == (len(x),)):
            told = f"rule {place_of(function)} returned {kind_of(weights)} as {name}"
            raise UserError(f"{told}, allowed: None, or a tensor [{len(x)}] with a weight for each upload")
    return returned if plain is vector else replace(returned, vector=plain)
