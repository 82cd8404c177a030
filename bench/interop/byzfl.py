"""ByzFL's aggregators as rules, and its pre-aggregators as wrappers: `byzfl:TrMean`, `byzfl:NNM+byzfl:Krum`.

ByzFL is imported, and nothing of it is copied (https://byzfl.epfl.ch, MIT licence). Its parameter f comes from the
call, and its other parameters are options.
"""

from __future__ import annotations

import inspect
from dataclasses import replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from fedarena.contracts.aggregator import Aggregate, Aggregator, Call, Wrapper, refuse_by_sender
from fedarena.core.card import Card, import_target
from fedarena.core.did_you_mean import did_you_mean
from fedarena.core.errors import UserError
from fedarena.core.registry import Held
from fedarena.core.rng import Rng
from fedarena.core.text.numbers import plural
from fedarena.core.torchvision_import import declare_operators
from fedarena.interop.constructor_options import chosen, options_class, parameters_of
from fedarena.interop.global_seed import global_seed
from fedarena.interop.library import FromLibrary, release, release_number

RULES, STEPS = "byzfl.aggregators.aggregators", "byzfl.aggregators.preaggregators"
"""The modules of rules, and of what stands before a rule."""


def rule_of(name: str) -> Held:
    """The rule or the wrapper with a name such as byzfl:TrMean. Raises UserError."""
    wanted, installed = name.partition(":")[2], release("byzfl", "byzfl", name)
    declare_operators()  # ByzFL imports torchvision
    found = {one: (base, cls) for module, base in ((RULES, Rule), (STEPS, Step)) for one, cls in _classes(module)}
    if wanted not in found:
        raise UserError(f"byzfl {installed} has no aggregator {wanted!r}{did_you_mean(wanted, found)}")
    base, source = found[wanted]
    card = Card(
        name=name,
        kind="aggregator",
        title=f"ByzFL's {'aggregator' if base is Rule else 'pre-aggregator'} {wanted}",
        target=type(wanted, (base,), {"kind": "aggregator", "name": name, "source": source}),
        options=options_class(source, "aggregator", name, left_out=("f",)),
        version=release_number(installed),
        url="https://byzfl.epfl.ch",
        facts=(("f", "the number of uploads that the server assumes to be corrupted"),),
    )
    return Held(name, f"{source.__module__}:{wanted}", f"byzfl {installed}", card)


def _classes(module: str) -> list[tuple[str, type[Any]]]:
    """The classes that a module defines. Raises UserError where it cannot be imported."""
    package, _, last = module.rpartition(".")
    names = vars(import_target(f"{package}:{last}", "byzfl"))
    return [(name, c) for name, c in names.items() if inspect.isclass(c) and c.__module__ == module]


class _Called(FromLibrary):
    """A class of ByzFL that is made anew for each call, with the call's f and what the last call left."""

    options: Any

    def made(self, f: int) -> Any:
        """The object. Raises UserError for options that its constructor refuses."""
        given = {"f": f} if "f" in parameters_of(self.source) else {}
        try:
            return self.source(**given, **chosen(self.options, f"aggregator {self.name}"))
        except (TypeError, ValueError) as error:
            raise UserError(f"aggregator {self.name}: {error}") from None

    def tried(self, n: int, f: int) -> tuple[Tensor, Tensor]:
        """Made-up uploads [n, 8], and what it makes of them. Raises UserError for an n and f that it refuses."""
        made, x = self.made(f), torch.randn(n, 8, generator=Rng(0).child(n).torch())
        x[0] *= 1000  # what no robust rule averages
        try:
            with global_seed(Rng(0)):
                return x, made(x.clone())
        except (TypeError, ValueError, IndexError, RuntimeError) as error:
            round = f"{plural(n, 'upload')} a round of which {f} are assumed to be corrupted"
            raise UserError(f"aggregator {self.name}: {round}: {error}") from None


class Rule(_Called, Aggregator):
    """A rule. `used` is known where the result is one of the uploads."""

    @cached_property
    def _kinds(self) -> dict[tuple[int, int], tuple[bool, bool]]:
        return {}

    def _kind(self, n: int, f: int) -> tuple[bool, bool]:
        """Whether it takes the mean of n uploads, and whether it takes one of them."""
        if (n, f) not in self._kinds:
            x, vector = self.tried(n, f)
            mean, one = torch.allclose(vector, x.mean(0), atol=1e-6), bool((x == vector).all(1).any())
            self._kinds[n, f] = mean and n > 1, one
        return self._kinds[n, f]

    def check(self, n: int, f: int) -> None:
        self._kind(n, f)

    def averages(self, n: int, f: int) -> bool:
        return self._kind(n, f)[0]

    def picks(self, n: int, f: int) -> bool:
        return self._kind(n, f)[1]

    def __call__(self, x: Tensor, call: Call) -> Aggregate:
        made = self.made(call.f)
        vars(made).update(call.memory)
        with global_seed(call.rng):
            vector = made(x.clone()).to(x)
        same = (x == vector).all(1)
        used = torch.zeros_like(x[:, 0]) if same.any() else None
        if used is not None:
            used[int(same.int().argmax())] = 1
        return Aggregate(vector, used, {name: t for name, t in vars(made).items() if isinstance(t, Tensor)})


class Step(_Called, Wrapper):
    """What stands before a rule. The rule gets the same f."""

    def check(self, n: int, f: int) -> None:
        refuse_by_sender(self.name, self.inner)
        _, mixed = self.tried(n, f)
        self.inner.check(len(mixed), f)

    def __call__(self, x: Tensor, call: Call) -> Aggregate:
        with global_seed(call.rng.child("before")):
            mixed = self.made(call.f)(x.clone()).to(x)
        inner = self.inside(mixed, replace(call, weights=call.weights.new_ones(len(mixed)), senders=()))
        return replace(inner, used=None, votes=None)
