"""FedZO: the gradient estimate along directions on the unit sphere, against autograd and known answers."""

from __future__ import annotations

import math
from itertools import islice

import pytest
import torch
from helpers.baffle import cosine, drawn
from helpers.fedzo import make, start
from torch.func import grad

from fedarena.core.tensors import flatten
from fedarena.defenses.fedzo.sphere import sphere_directions, sphere_estimate


def test_directions_have_length_one_and_no_preferred_axis():
    v = torch.stack(list(islice(sphere_directions(3, 7), 4000)))
    assert torch.allclose(v.norm(dim=1), torch.ones(len(v)), atol=1e-5)
    second = (
        v.T @ v / len(v)
    )  # E[v vᵀ] = I/d; an entry of the mean of 4,000 is off by less than 0.004 at five deviations
    assert torch.allclose(second, torch.eye(7) / 7, atol=0.02)


def test_the_estimate_of_known_differences_is_their_weighted_sum():
    """ΔL = (3, −1) along v_1, v_2 in five dimensions with μ = 0.5: g = (5/0.5)·(1/2)·(3 v_1 − v_2)."""
    v = list(islice(sphere_directions(11, 5), 2))
    g = sphere_estimate(11, 5, torch.tensor([3.0, -1.0]), 0.5)
    assert torch.allclose(g, 5.0 * (3 * v[0] - v[1]), atol=1e-6)


@pytest.mark.parametrize(("directions", "seeds"), [(1, 1000), (20, 200)])
def test_the_estimate_is_unbiased(directions, seeds):
    """The mean over many seeds is the gradient, within its own spread in every coordinate; without d/μ it is not."""
    defense = make(directions=directions, precision="float64")
    w, batch = start(defense).params, drawn(defense)
    x, y = batch.x[0], batch.y[0]
    truth = flatten(grad(defense.task.loss)(w, x, y)).double()
    found = torch.stack(
        [
            sphere_estimate(seed, defense.steps.n, defense.differences(w, x, y, seed), defense.options.mu)
            for seed in range(seeds)
        ]
    )
    error = (found.mean(0) - truth) / (found.std(0) / math.sqrt(len(found)))
    assert error.abs().max() < 4.5
    assert error.std() < 1.2


@pytest.mark.parametrize(("directions", "seeds"), [(10, 30), (50, 30), (400, 8)])
def test_the_cosine_follows_the_theory(directions, seeds):
    """cos(g, ∇L) ≈ √(b2/(d + b2)), as with normal directions: their lengths hardly differ."""
    defense = make(directions=directions, precision="float64")
    w, batch = start(defense).params, drawn(defense)
    x, y = batch.x[0], batch.y[0]
    truth = flatten(grad(defense.task.loss)(w, x, y)).double()
    found = [
        cosine(sphere_estimate(s, defense.steps.n, defense.differences(w, x, y, s), defense.options.mu), truth)
        for s in range(seeds)
    ]
    theory = math.sqrt(directions / (defense.steps.n + directions))
    assert sum(found) / len(found) == pytest.approx(theory, rel=0.1)
