"""Methods as functions: decorators that make the class and the card of the long form.

    @fa.rule("middle", title="The median of every coordinate")
    def middle(x, f):
        return x.median(0).values

The name of the function then holds the card, which `--plugin`, entry points and `fa.run` take. In a session the method
is known by its name at once. Further fields of the card (`fedarena.core.card.Card`) are keywords. Without `version` the
version is a hash of the function, so that records of a changed one have keys of their own. A method with options, a
memory or readings of its own is a class.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any
from uuid import uuid4

import torch
from torch import Tensor

from fedarena.attacks.poisoning.helpers.usual_problem import USUAL
from fedarena.contracts.aggregator import Aggregate, Aggregator, Call
from fedarena.contracts.goal_names import GoalName
from fedarena.contracts.inference import GradientEstimate, Inference, Labels, Progress, Reconstruction, Scores, Watch
from fedarena.contracts.observation import Observation
from fedarena.contracts.poisoning import Poisoning, RoundView
from fedarena.contracts.view import View
from fedarena.core.card import Card, Kind
from fedarena.core.errors import UnusableAnswer, UserError, place_of, type_of
from fedarena.core.registry import hold
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, are_tensors, flatten, kind_of, plain_like, row, rows, shaped
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Batch
from fedarena.runs.fingerprint import fingerprint

Function = Callable[..., Any]
Decorator = Callable[[Function], Card]
Key = tuple[str, Kind, str]
"""The module of a function, and the kind and the name of the method that is made of it."""

WATCHED = 25
"""The rounds that a privacy attack reads; each is a question of its own."""
ANSWERS: Mapping[str, Callable[..., Any]] = {
    "labels": Labels,
    "membership": Scores,
    "estimate": GradientEstimate,
    "reconstruction": lambda answer: Reconstruction(answer[0], labels=answer[1], match=0.0, evaluations=0),
}
"""Goal → the answer to one observation, from what the function returns."""


def rule(name: str, title: str = "", **card: Any) -> Decorator:
    """An aggregation rule from `f(x, f)`: uploads [n, d], and how many are assumed to be corrupted → a vector [d]."""

    class Rule(_Short, Aggregator):
        def __call__(self, x: Tensor, call: Call) -> Aggregate:
            return Aggregate(self.function(x, call.f), used=None)

    return _decorator("aggregator", Rule, (2,), {"name": name, "title": title, **card}, "rule")


def defense(name: str, title: str = "", **card: Any) -> Decorator:
    """A defense from `f(upload)` or `f(upload, noise)`: FedAvg's upload of one client [d] → what it sends, [d].

    It is pure and differentiable. The noise is standard normal, [d]; whoever simulates the client has zeros in its
    place.
    """

    class Short(_Short, FedAvg):
        no_momentum = ""
        dropout = True
        undisclosed = "draw the noise that the function gets, and the server takes the mean of what they send"

        def draw(self, rng: Rng) -> Tensors:
            if self.parameters < 2:
                return {}
            plain = {name: p.detach() for name, p in self.task.model.named_parameters()}
            return {"noise": torch.randn(len(flatten(plain)), generator=rng.torch()).to(flatten(plain))}

        def client(self, down: Tensors, batch: Batch, memory: Tensors, noise: Tensors) -> tuple[Tensors, Tensors]:
            up, memory = super().client(down, batch, memory, {})
            flat = flatten(up)
            more = (noise.get("noise", torch.zeros_like(flat)),) if self.parameters > 1 else ()
            return shaped(self._like(flat, self.function(flat, *more), UserError), up), memory

    return _decorator("defense", Short, (1, 2), {"name": name, "title": title, **card}, "defense")


def poisoning(name: str, title: str = "", **card: Any) -> Decorator:
    """A poisoning attack from `f(own, rng)`: what the corrupted clients would send [f, d] → what they send, [f, d].

    `rng` is a `torch.Generator`. By default it is run with twenty clients, of which four are corrupted.
    """

    class Short(_Short, Poisoning):
        def craft(self, view: RoundView, memory: Tensors, rng: Rng) -> tuple[Tensors, Tensors]:
            own = rows(view.own)
            return shaped(self._like(own, self.function(own, rng.torch())), row(view.own, 0)), memory

    about = {"name": name, "title": title, "goal": "poisoning", "usual": USUAL, **card}
    return _decorator("attack", Short, (2,), about, "poisoning")


def privacy_attack(name: str, title: str = "", goal: GoalName = "labels", **card: Any) -> Decorator:
    """A privacy attack from `f(seen, view)`: an `Observation` and the `View` → the answer to that observation.

    The goal decides what the answer is::

        labels           classes [seen.images]
        membership       scores of seen.candidates [m]; higher: more likely in the batch
        estimate         a gradient, by parameter
        reconstruction   (images [seen.images, *view.input_shape], classes [seen.images])
    """
    if goal not in ANSWERS:
        raise UserError(f"attack {name}: goal is {goal!r}, allowed in a function: {', '.join(ANSWERS)}")

    class Short(_Short, Inference):
        def watch(self, schedule: Schedule) -> Watch:
            return Watch.opening(WATCHED, schedule)

        def run(self, view: View, rng: Rng, progress: Progress) -> list[Any]:
            return [self._answer(seen, view) for seen in view.observations]

        def _answer(self, seen: Observation, view: View) -> Any:
            returned = self.function(seen, view)
            if (allowed := unanswered(goal, returned, seen, view)) is not None:
                raise UnusableAnswer(f"{self.place} returned {kind_of(returned)}, allowed: {allowed}")
            return ANSWERS[goal](returned)

    Short.goal = goal
    about = {"name": name, "title": title, "goal": goal, **card}
    return _decorator("attack", Short, (2,), about, "privacy_attack")


def unanswered(goal: GoalName, returned: Any, seen: Observation, view: View) -> str | None:
    """What the answer to an observation may be, where what a function returned is none."""
    n, shape = seen.images, [seen.images, *view.input_shape]
    if goal == "labels":
        may = f"a tensor [{n}] of classes from 0 to {view.n_classes - 1}"
        return None if _classes(returned, n, view) else may
    if goal == "membership":
        m = 0 if seen.candidates is None else len(seen.candidates.x)
        return None if isinstance(returned, Tensor) and returned.shape == (m,) else f"a tensor [{m}] of scores"
    if goal == "estimate":
        fits = isinstance(returned, Mapping) and are_tensors(returned.values())
        return None if fits else "a mapping from parameters to tensors"
    fits = isinstance(returned, tuple) and len(returned) == 2 and isinstance(returned[0], Tensor)
    if fits and list(returned[0].shape) == shape and (not view.n_classes or _classes(returned[1], n, view)):
        return None
    return f"a tuple of images {shape} and a tensor [{n}] of classes"


def _classes(returned: Any, n: int, view: View) -> bool:
    """Whether it is a tensor of n whole numbers that are classes."""
    if not isinstance(returned, Tensor) or returned.shape != (n,) or returned.is_floating_point():
        return False
    if returned.is_complex() or returned.dtype == torch.bool:
        return False
    whole = returned.long()  # unsigned ones of 16 bits and more have no order in torch
    return not n or 0 <= int(whole.min()) <= int(whole.max()) < view.n_classes


class _Short:
    """What classes of functions share: their objects are pickled by the place of the card.

    Attributes:
        function: what the user wrote. parameters: how many it has.
        key, number: of its class, in `_made` and in `_in_order`.
        versioned_by: the function if its hash is the version; None: the version is its author's.
    """

    function: Function
    parameters: int
    key: Key
    number: int
    versioned_by: Function | None

    @property
    def place(self) -> str:
        """Where the function is written."""
        return place_of(self.function)

    def _like(self, given: Tensor, returned: Any, error: type[Exception] = UnusableAnswer) -> Tensor:
        """What the function returned. Raises the error where it has not the shape of what it was given."""
        if (plain := plain_like(returned, given)) is not None:
            return plain
        raise error(f"{self.place} returned {kind_of(returned)}, allowed: {kind_of(given)}")

    def __reduce__(self) -> tuple[Any, ...]:
        return _blank, (self.key, self.number, PROCESS), self.__dict__


PROCESS = uuid4().hex
"""This process, in which a class has its number."""
_made: dict[Key, type] = {}
"""The classes that were made of functions here, the latest of each key."""
_in_order: list[type] = []
"""All of them: two may have the same name."""


def _blank(key: Key, number: int, process: str) -> Any:
    """An object of the class that was made of a function, without its attributes."""
    if process != PROCESS and key not in _made:
        import_module(key[0])
    made: Any = _in_order[number] if process == PROCESS else _made[key]
    return made.__new__(made)


def _decorator(kind: Kind, made: type, parameters: tuple[int, ...], about: dict[str, Any], called: str) -> Decorator:
    """Make a class and a card of a function.

    Args:
        made: the class's base, which calls the function.
        parameters: how many parameters the function may have. about: fields of the card. called: the decorator's name.
    """

    if not isinstance(about["name"], str):
        raise UserError(f'@fa.{called} has no name, allowed: @fa.{called}("NAME")')

    def decorate(function: Function) -> Card:
        if not inspect.isfunction(function):
            raise UserError(f"{kind} {about['name']} is made of {type_of(function)}, allowed: a function")
        given = inspect.signature(function).parameters.values()
        count = sum(one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD) for one in given)
        if count not in parameters or count < len(given):
            allowed = " or ".join(map(str, parameters))
            told = f"its function takes {len(given)} parameters" + " (not all by position)" * (count < len(given))
            raise UserError(f"{kind} {about['name']}: {told}, allowed: {allowed}")
        key = (function.__module__, kind, about["name"])
        whose = {"function": staticmethod(function), "parameters": count, "key": key, "number": len(_in_order)}
        source = None if "version" in about else function
        says = {"__module__": function.__module__, "__doc__": function.__doc__, "__qualname__": function.__name__}
        short = type(function.__name__, (made,), {**whose, **says, "versioned_by": source})
        _made[key] = short
        _in_order.append(short)
        title = about["title"] or (function.__doc__ or function.__name__).strip().splitlines()[0]
        version = about["version"] if source is None else fingerprint(source)
        try:
            card = Card(**{**about, "title": title, "version": version}, kind=kind, target=short)
        except (TypeError, ValueError) as error:
            raise UserError(f"{kind} {about['name']}: {error}") from None
        if function.__module__ == "__main__":  # of a session; a plug-in file's are found by its syntax tree
            with suppress(UserError):  # a name in use is told where the card is used
                hold(card, source)
        return card

    return decorate
