"""What stands in for the version of an object that has none: another object has another number."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn, relu, tanh

from fedarena.core.errors import UserError
from fedarena.runs.fingerprint import fingerprint


def net(width: int = 4, bias: bool = True) -> nn.Module:
    return nn.Sequential(nn.Linear(8, width, bias=bias), nn.ReLU(), nn.Linear(width, 2))


def own(factor: float = 1.0, negative: bool = False, constant: float = 0.0) -> nn.Module:
    """Modules of one class name."""

    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.factor = nn.Linear(8, 2), factor
            self.register_buffer("constant", torch.tensor(constant))

        if negative:

            def forward(self, x: Any) -> Any:
                return -self.factor * self.layer(x) + self.constant
        else:

            def forward(self, x: Any) -> Any:
                return self.factor * self.layer(x) + self.constant

    return Own()


def within(width: int) -> Callable[..., nn.Module]:
    return lambda input_shape, n_classes: net(width)


def by_default(width: int) -> Callable[..., nn.Module]:
    return lambda input_shape, n_classes, width=width: net(width)


def rule(factor: float) -> type:
    class Rule:
        scale = factor

        def __call__(self, x: Any) -> Any:
            return super().__hash__() * x  # `super` makes the method refer to its class

    return Rule


def from_text(code: str, **given: Any) -> Callable[..., Any]:
    """A function of a session: its global variables are those of the text."""
    session: dict[str, Any] = {"__name__": "__main__", "net": net, **given}
    exec(code, session)
    made: Callable[..., Any] = session["made"]
    return made


BY_LOOP = "made = lambda input_shape, n_classes: net(width)"
BY_HELPER = "def helper(x):\n    return {} * x\ndef made(x, f):\n    return [helper(one) for one in x]"


class Holding(nn.Module):
    """A module with an attribute."""

    def __init__(self, held: Any) -> None:
        super().__init__()
        self.layer, self.held = nn.Linear(8, 2), held


def nested(depth: int) -> Any:
    """Lists that hold the same list twice."""
    return [nested(depth - 1)] * 2 if depth else [1]


def with_its(module: nn.Module, **attributes: Any) -> nn.Module:
    for name, value in attributes.items():
        setattr(module, name, value)
    return module


def with_hook(hook: Callable[..., Any]) -> nn.Module:
    module = nn.Linear(8, 2)
    module.register_forward_hook(hook)
    return module


class Slotted:
    """An object without a `__dict__`, whose text does not tell it."""

    __slots__ = ("held",)

    def __init__(self, held: Any) -> None:
        self.held = held

    def __repr__(self) -> str:
        return "Slotted()"


@dataclass
class Config:
    """Its text shows few digits of a tensor."""

    held: Any


def marked(function: Callable[..., Any], mark: int) -> Callable[..., Any]:
    made: Any = FunctionType(function.__code__, function.__globals__, function.__name__)
    made.mark = mark
    return made


def with_metaclass(factor: float) -> type:
    class Meta(type):
        def __call__(cls) -> Any:
            return factor

    class Made(metaclass=Meta):
        pass

    return Made


def with_package(factor: float) -> Callable[..., Any]:
    """A function that uses a module inside a package of the user's."""
    package, inside = ModuleType("pack"), ModuleType("pack.inside")
    exec(f"def helper(x):\n    return {factor} * x", inside.__dict__)
    package.inside = inside  # type: ignore[attr-defined]
    return from_text("def made(x, f):\n    return pack.inside.helper(x)", pack=package)


def with_module(factor: float) -> Callable[..., Any]:
    """A function that uses a module of the user's."""
    util = ModuleType("util")
    exec(f"def helper(x):\n    return {factor} * x", util.__dict__)
    return from_text("def made(x, f):\n    return util.helper(x)", util=util)


def shared(last: int) -> nn.Module:
    """A network that uses one activation twice."""
    acts = [nn.ReLU(), nn.Tanh()]
    return nn.Sequential(nn.Linear(8, 8), acts[0], nn.Linear(8, 8), acts[1], nn.Linear(8, 8), acts[last])


class Raising:
    """An object that looks its attributes up."""

    def __init__(self) -> None:
        self.data = {"a": 1}

    def __getattr__(self, name: str) -> Any:
        return self.__dict__["data"][name]


class Leaving:
    """An object that pickle would save without its value."""

    def __init__(self, held: Any) -> None:
        self.held = held

    def __getstate__(self) -> dict[str, Any]:
        return {}


DIFFERENT = {
    "layers that stand twice": (shared(0), shared(1)),
    "functions with a cache": (cache(within(3)), cache(within(4))),
    "orders of mappings": (Holding({"a": 1, "b": 2}), Holding({"b": 2, "a": 1})),
    "what pickle leaves out": (Holding(Leaving(1)), Holding(Leaving(2))),
    "masks": (Holding(np.ma.masked_array([1, 2], [0, 1])), Holding(np.ma.masked_array([1, 2], [0, 0]))),
    "views of memory": (Holding(memoryview(b"a")), Holding(memoryview(b"b"))),
    "conjugates": (Holding(torch.tensor([1j]).conj()), Holding(torch.tensor([2j]).conj())),
    "parts that stand twice": (Holding([relu, tanh, relu]), Holding([relu, tanh, tanh])),
    "tensors in a dataclass": (Holding(Config(torch.tensor(1.0))), Holding(Config(torch.tensor(1.00001)))),
    "tables": (Holding(pd.DataFrame({"a": range(99)})), Holding(pd.DataFrame({"a": [*range(50), *range(51, 100)]}))),
    "slots": (Holding(Slotted(1)), Holding(Slotted(2))),
    "arrays of objects": (Holding(np.array([1, "a"], object)), Holding(np.array([2, "a"], object))),
    "what a layer does not show": (nn.AvgPool2d(2), nn.AvgPool2d(2, count_include_pad=False)),
    "modes": (Holding(1), Holding(1).eval()),
    "hooks": (with_hook(relu), with_hook(tanh)),
    "attributes of torch's layers": (with_its(nn.ReLU(), mark=1), with_its(nn.ReLU(), mark=2)),
    "forward steps of torch's layers": (with_its(net(), forward=relu), with_its(net(), forward=tanh)),
    "attributes of functions": (marked(nested, 1), marked(nested, 2)),
    "metaclasses": (with_metaclass(1.0), with_metaclass(2.0)),
    "modules in packages": (with_package(1.0), with_package(2.0)),
    "the user's modules": (with_module(1.0), with_module(2.0)),
    "generators of numbers": (Holding(np.random.default_rng(0)), Holding(np.random.default_rng(1))),
    "global variables": (from_text(BY_LOOP, width=4), from_text(BY_LOOP, width=8)),
    "helpers": (from_text(BY_HELPER.format(2)), from_text(BY_HELPER.format(3))),
    "functions of torch": (Holding(torch.relu), Holding(torch.tanh)),
    "arrays": (Holding(np.arange(3)), Holding(np.arange(1, 4))),
    "numbers of numpy": (Holding(np.float32(1)), Holding(np.float32(2))),
    "ranges": (Holding(range(2)), Holding(range(3))),
    "types": (Holding(torch.float32), Holding(torch.float64)),
    "paths": (Holding(Path("a")), Holding(Path("b"))),
    "halves": (Holding(torch.zeros(2, dtype=torch.bfloat16)), Holding(torch.ones(2, dtype=torch.bfloat16))),
    "sparse": (Holding(torch.eye(2).to_sparse()), Holding(2 * torch.eye(2).to_sparse())),
    "widths": (net(4), net(5)),
    "biases": (net(4), net(4, bias=False)),
    "forward steps": (own(), own(negative=True)),
    "attributes": (own(1.0), own(2.0)),
    "constants": (own(), own(constant=1.0)),
    "closures": (within(3), within(4)),
    "defaults": (by_default(3), by_default(4)),
    "arguments": (partial(net, 3), partial(net, 4)),
    "classes": (rule(1.0), rule(2.0)),
}


@pytest.mark.parametrize(("one", "other"), DIFFERENT.values(), ids=DIFFERENT)
def test_different_objects_have_different_numbers(one: Any, other: Any) -> None:
    assert fingerprint(one) != fingerprint(other)


REPEATED: dict[str, Callable[[], Any]] = {
    "net": net,
    "own": own,
    "within": partial(within, 3),
    "rule": partial(rule, 2.0),
    "loop": partial(from_text, BY_LOOP, width=4),
    "lock": lambda: Holding(threading.Lock()),
    "logger": lambda: Holding(logging.getLogger("a")),
    "generator": lambda: Holding(one for one in ()),
    "lazy": lambda: nn.LazyLinear(3),
    "meta": lambda: Holding(torch.zeros(2, device="meta")),
    "functions": lambda: Holding({net, own}),
    "by a function": lambda: Holding({net: 1, own: 2}),
    "hooked": lambda: with_hook(relu),
    "any attribute": lambda: Holding(Raising()),
    "nested": lambda: Holding(torch.nested.nested_tensor([torch.ones(1), torch.ones(2)])),
    "cache": lambda: cache(within(3)),
    "shared": lambda: shared(0),
    "table": lambda: Holding(pd.DataFrame({"a": [1, 2]})),
}


@pytest.mark.parametrize("make", REPEATED.values(), ids=REPEATED)
def test_the_same_made_again_has_the_same_number(make: Callable[[], Any]) -> None:
    assert fingerprint(make()) == fingerprint(make()) >= 1


def test_shared_parts_are_described_once() -> None:
    """Once a path they would be 2^60."""
    assert fingerprint(Holding(nested(60))) != fingerprint(Holding(nested(59)))


def test_what_is_nested_too_deeply_is_refused() -> None:
    deep: Any = Slotted(None)
    for _ in range(2000):
        deep = Slotted(deep)
    with pytest.raises(UserError, match=r"^a Holding holds objects that are nested too deeply to be told from others$"):
        fingerprint(Holding(deep))


def test_another_process_finds_the_same() -> None:
    code = "import test_fingerprint as t; print([t.fingerprint(x) for pair in t.DIFFERENT.values() for x in pair])"
    ran = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(__file__).rpartition('/')[0]!r}); {code}"]
    other = subprocess.run(ran, capture_output=True, text=True, check=True, env=None).stdout
    # What a module is called is part of no number: here it is imported by another name.
    assert json.loads(other) == [fingerprint(x) for pair in DIFFERENT.values() for x in pair]
