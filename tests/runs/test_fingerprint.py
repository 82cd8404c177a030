"""What stands in for the version of an object that has none: another object has another number."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

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


DIFFERENT = {
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


@pytest.mark.parametrize("make", [net, own, partial(within, 3), partial(rule, 2.0)])
def test_the_same_made_again_has_the_same_number(make: Callable[[], Any]) -> None:
    assert fingerprint(make()) == fingerprint(make()) >= 1


def test_another_process_finds_the_same() -> None:
    code = "import test_fingerprint as t; print([t.fingerprint(x) for pair in t.DIFFERENT.values() for x in pair])"
    ran = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(__file__).rpartition('/')[0]!r}); {code}"]
    other = subprocess.run(ran, capture_output=True, text=True, check=True, env=None).stdout
    # What a module is called is part of no number: here it is imported by another name.
    assert json.loads(other) == [fingerprint(x) for pair in DIFFERENT.values() for x in pair]
