"""What a law is, and what is said where a method breaks one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, update_wrapper
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from fedarena.core.card import KINDS, Card, Kind
from fedarena.core.errors import UserError

P = ParamSpec("P")
T = TypeVar("T")


class LawBroken(AssertionError):
    """A method breaks a law.

    Attributes:
        figure: what was found, in numbers where there are any.
        remedy: what to do.
        law, says, method: the law, its text, and the method; "" until `fedarena.testing.check` has filled them in.
    """

    def __init__(self, figure: str, remedy: str, law: str = "", says: str = "", method: str = "") -> None:
        whose = f"{method} breaks the law '{law}' ({says}): " if law else ""
        super().__init__(f"{whose}{figure}. To do: {remedy}.")
        self.figure, self.remedy, self.law, self.says, self.method = figure, remedy, law, says, method

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.figure, self.remedy, self.law, self.says, self.method)


class LawIdle(Exception):
    """A law says nothing about a method; the message is the reason."""


def require(holds: bool, figure: str, remedy: str) -> None:
    """Raise LawBroken unless something holds."""
    if not holds:
        raise LawBroken(figure, remedy)


@dataclass(frozen=True)
class Method:
    """A method with its options, as laws look at it.

    Attributes:
        card: its card; the target is a class or a function, or can be imported here.
        options: an object of the card's options.
        inside: of wrappers, the method inside: a rule, or a function of `AttackerKnowledge` that makes an attack.
        data_dir: of data sets, where files are looked for.
    """

    card: Card
    options: Any
    inside: Any = None
    data_dir: Path | None = None

    @classmethod
    def of(cls, card: Card, inside: Any = None, **options: Any) -> Method:
        """With options as objects."""
        return cls(card, card.options(**options), inside)

    @property
    def name(self) -> str:
        """Kind and name."""
        return f"{self.card.kind} '{self.card.name}'"

    @cached_property
    def target(self) -> Any:
        """The implementation. Raises UserError when it cannot be imported."""
        return self.card.load()

    @cached_property
    def kept(self) -> dict[tuple[Any, ...], Any]:
        """What laws have computed of it (`once`), by function and arguments."""
        return {}

    def is_a(self, base: type) -> bool:
        """Whether the implementation is a subclass; one that cannot be imported is of none."""
        with suppress(UserError):
            return isinstance(self.target, type) and issubclass(self.target, base)
        return False


def once(compute: Callable[Concatenate[Method, P], T]) -> Callable[Concatenate[Method, P], T]:
    """Compute what several laws read once for each object of `Method` and each further arguments."""

    def kept(method: Method, /, *args: P.args, **kwargs: P.kwargs) -> T:
        key = (compute, args, *sorted(kwargs.items()))
        if key not in method.kept:
            method.kept[key] = compute(method, *args, **kwargs)
        found: T = method.kept[key]
        return found

    update_wrapper(kept, compute)
    return kept


@dataclass(frozen=True)
class Law:
    """One law.

    Attributes:
        name: short, with hyphens.
        says: the law in one sentence.
        kinds: the kinds of methods that it is about.
        concerns: whether it is about a method of these kinds.
        hold: raises LawBroken for a method that breaks it, and LawIdle where it says nothing about it.
    """

    name: str
    says: str
    kinds: tuple[Kind, ...]
    hold: Callable[[Method], None] = field(repr=False)
    concerns: Callable[[Method], bool] = field(repr=False)


LAWS: list[Law] = []
"""All laws whose files are imported."""

Hold = Callable[[Method], None]


def law(*kinds: Kind, concerns: Callable[[Method], bool] = lambda method: True) -> Callable[[Hold], Hold]:
    """Make a function a law: its name with hyphens is the law's, and the first line of its docstring says it.

    Args:
        kinds: the kinds of methods that it is about; none: every kind.
        concerns: of kinds that comprise several, whether it is about this method.
    """

    def register(hold: Hold) -> Hold:
        says = (hold.__doc__ or "").strip().splitlines()[0].rstrip(".")
        LAWS.append(Law(hold.__name__.replace("_", "-"), says, kinds or KINDS, hold, concerns))
        return hold

    return register
