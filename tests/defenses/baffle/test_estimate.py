"""BAFFLE: Stein's estimate against autograd, and the theory of how near it comes."""

from __future__ import annotations

import math
from itertools import islice

import pytest
import torch
from helpers.baffle import cosine, drawn, make, start
from torch.func import grad

from fedarena.core.tensors import flatten
from fedarena.defenses.baffle.directions import directions


@pytest.mark.parametrize("scheme", ["forward", "central"])
def test_stein_s_estimate_is_unbiased(scheme):
    """The mean over 400 seeds is the gradient, within four standard errors of its own spread in every coordinate."""
    defense = make(directions=40, scheme=scheme, precision="float64")
    w, batch = start(defense).params, drawn(defense)
    truth = flatten(grad(defense.task.loss)(w, batch.x[0], batch.y[0])).double()
    found = torch.stack(
        [
            flatten(
                defense.wire.estimate(
                    seed, defense.differences(w, batch.x[0], batch.y[0], seed, defense.options.directions)
                )
            ).double()
            for seed in range(400)
        ]
    )
    error = (found.mean(0) - truth) / (found.std(0) / math.sqrt(len(found)))
    assert error.abs().max() < 4.5
    assert error.std() < 1.2


@pytest.mark.parametrize("k", [10, 50, 400])
def test_cosine_follows_the_theory(k):
    """cos(ĝ, g) ≈ √(K/(n + K))."""
    defense = make(directions=k, precision="float64")
    w, batch = start(defense).params, drawn(defense)
    truth = flatten(grad(defense.task.loss)(w, batch.x[0], batch.y[0]))
    found = [
        cosine(
            flatten(
                defense.wire.estimate(s, defense.differences(w, batch.x[0], batch.y[0], s, defense.options.directions))
            ).float(),
            truth,
        )
        for s in range(30)
    ]
    theory = math.sqrt(k / (defense.wire.n + k))
    assert sum(found) / len(found) == pytest.approx(theory, rel=0.1)


def test_central_is_better_where_the_loss_is_curved():
    """The same directions, σ large: forward differences carry the curvature, central ones do not."""
    errors = {}
    for scheme in ("forward", "central"):
        defense = make(directions=200, scheme=scheme, sigma=0.05, precision="float64")
        w, batch = start(defense).params, drawn(defense)
        g = flatten(grad(defense.task.loss)(w, batch.x[0], batch.y[0])).double()
        z = torch.stack(list(islice(directions(3, defense.wire.n), 200))).double()
        half = 2 if scheme == "central" else 1
        found = defense.differences(w, batch.x[0], batch.y[0], 3, defense.options.directions) / (half * 0.05)
        errors[scheme] = float((found - z @ g).norm() / (z @ g).norm())
    assert errors["central"] < 0.3 * errors["forward"]
