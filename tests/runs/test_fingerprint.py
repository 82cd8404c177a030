"""What stands in for the version of an object that has none: another object has another number."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

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


DIFFERENT = {
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
}


@pytest.mark.parametrize("make", REPEATED.values(), ids=REPEATED)
def test_the_same_made_again_has_the_same_number(make: Callable[[], Any]) -> None:
    assert fingerprint(make()) == fingerprint(make()) >= 1


def test_shared_parts_are_described_once() -> None:
    """Once a path they would be 2^60."""
    assert fingerprint(Holding(nested(60))) != fingerprint(Holding(nested(59)))


def test_another_process_finds_the_same() -> None:
    code = "import test_fingerprint as t; print([t.fingerprint(x) for pair in t.DIFFERENT.values() for x in pair])"
    ran = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(__file__).rpartition('/')[0]!r}); {code}"]
    other = subprocess.run(ran, capture_output=True, text=True, check=True, env=None).stdout
    # What a module is called is part of no number: here it is imported by another name.
    assert json.loads(other) == [fingerprint(x) for pair in DIFFERENT.values() for x in pair]
