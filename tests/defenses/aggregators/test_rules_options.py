"""Every option of every rule changes what it returns, and centered clipping's memory acts."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
from helpers.rules import NAMES, WRAPPERS, rule
from torch import Tensor

from fedarena.core import registry
from fedarena.testing.rule_laws import aggregate as run

OTHER: dict[tuple[str, str], dict[str, Any]] = {
    ("multi-krum", "m"): {"m": 3},
    ("geometric-median", "iterations"): {"iterations": 0},
    ("geometric-median", "eps"): {"eps": 20.0},
    ("centered-clipping", "tau"): {"tau": 3.0},
    ("centered-clipping", "iterations"): {"iterations": 2},
    ("norm-bounding", "bound"): {"bound": 2.0},
    ("dnc", "iterations"): {"iterations": 1},
    ("dnc", "coordinates"): {"coordinates": 5},
    ("dnc", "c"): {"c": 2.0},
    ("signguard", "low"): {"low": 0.95},
    ("signguard", "high"): {"high": 2.0},
    ("signguard", "share"): {"share": 1.0},
    ("bucketing", "s"): {"s": 3},
    ("clipping", "c"): {"c": 12.0},
    ("foolsgold", "confidence"): {"confidence": 0.2},
    ("foolsgold", "divide"): {"divide": "clients"},
    ("flame", "noise"): {"noise": 0.0},
    ("flame", "min_samples"): {"min_samples": 4},
    ("rlr", "theta"): {"theta": 10},
    ("lasa", "sparsity"): {"sparsity": 0.9},
    ("lasa", "norm_limit"): {"norm_limit": 0.1},
    ("lasa", "sign_limit"): {"sign_limit": 0.2},
    ("lasa", "averaged"): {"averaged": "sparse"},
    ("foundationfl", "copies"): {"copies": 3},
}


OVER_ROUNDS = {("fldetector", "window"), ("fldetector", "references")}
"""Options that act after some rounds: test_histories_plainly.py."""
SHARED: dict[tuple[str, str], dict[str, Any]] = {
    ("dnc", "iterations"): {"coordinates": 5},
    ("foolsgold", "divide"): {"confidence": 0.2},
    ("lasa", "norm_limit"): {"sign_limit": 9.0},
}
"""Settings on both sides, where an option acts only with them."""


def uploads() -> Tensor:
    """Rows of different lengths; one is 2.5 times as long as usual."""
    g = torch.Generator().manual_seed(0)
    x = torch.randn(15, 100, generator=g) + torch.randn(100, generator=g)
    x[4] *= 2.5
    return x


def test_every_option_is_tried() -> None:
    declared = {(name, f.name) for name in NAMES for f in dataclasses.fields(registry.find("aggregator", name).options)}
    assert declared == {*OTHER, ("fltrust", "root"), *OVER_ROUNDS}


@pytest.mark.parametrize(("name", "option"), OTHER)
def test_every_option_acts(name: str, option: str) -> None:
    inner, shared = rule("median") if name in WRAPPERS else None, SHARED.get((name, option), {})
    usual, changed = (run(rule(name, inner, **{**shared, **o}), uploads(), 2).vector for o in ({}, OTHER[name, option]))
    assert not torch.allclose(usual, changed)


def test_root_is_what_the_server_must_hold() -> None:
    """The harness draws the samples; a rule only says how many of each class."""
    assert (rule("fltrust").auxiliary, rule("fltrust", root=3).auxiliary) == (10, 3)
    assert all(rule(n).auxiliary == 0 for n in NAMES if n not in (*WRAPPERS, "fltrust"))


def test_centered_clipping_walks_on_from_what_it_returned() -> None:
    made, x, memory = rule("centered-clipping", tau=1.0), uploads(), {}
    distances = []
    for _ in range(30):
        done = run(made, x, 2, memory=memory)
        memory = done.memory
        distances.append(float((done.vector - x.mean(0)).norm()))
    assert float(run(made, x, 2).vector.norm()) <= 1 + 1e-5  # from 0, one step of at most tau
    assert distances[-1] < 0.3 * distances[0]
