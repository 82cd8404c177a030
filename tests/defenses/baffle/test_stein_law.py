"""BAFFLE simulated in law: the draws are distributed as the real estimates, and marked."""

from __future__ import annotations

import math

import pytest
import torch
from helpers.baffle import cosine, drawn, make, one_round, start
from scipy.stats import ks_2samp
from torch.func import grad

from fedarena.contracts.defense import Cohort
from fedarena.core.rng import Rng
from fedarena.core.tensors import flatten, rows
from fedarena.defenses.baffle import stein_law

# -- simulated in law -----------------------------------------------------------------------------------


def test_the_law_is_the_estimate_s():
    """Length, cosine with the gradient and a coordinate: draws of the law against real estimates, two-sample KS."""
    defense = make(directions=15, precision="float64", sigma=1e-6)
    w, batch = start(defense).params, drawn(defense)
    g = flatten(grad(defense.task.loss)(w, batch.x[0], batch.y[0])).double()
    generator = Rng(7).torch()
    real = torch.stack(
        [
            flatten(
                defense.wire.estimate(s, defense.differences(w, batch.x[0], batch.y[0], s, defense.options.directions))
            ).double()
            for s in range(1000, 1600)
        ]
    )
    law = torch.stack([stein_law.estimate(g, 15, generator) for _ in range(600)])
    across = torch.linalg.svd(g[None])[2][1]  # a direction at right angles to g
    for statistic in (
        lambda x: x.norm(dim=1),
        lambda x: x @ g / (x.norm(dim=1) * g.norm()),
        lambda x: x @ g,
        lambda x: x @ across,
        lambda x: x[:, 17],
    ):
        assert ks_2samp(statistic(real).numpy(), statistic(law).numpy()).pvalue > 1e-3
    wrong = torch.stack([stein_law.estimate(g, 20, generator) for _ in range(600)])
    assert ks_2samp(real.norm(dim=1).numpy(), wrong.norm(dim=1).numpy()).pvalue < 1e-3


def test_the_law_of_own_perturbations_is_a_mean_of_independent_draws():
    found = {}
    for perturbations in ("shared", "client"):
        defense = make(sizes=(30,) * 10, directions=5, law=True, perturbations=perturbations)
        state, values = start(defense), []
        for t in range(30):
            sent, _batches, ups, _, _ = one_round(defense, state, t)
            cohort = Cohort(tuple(range(10)), torch.ones(10))
            step = flatten(defense.direction(state, sent, ups, cohort, Rng(t)).step)
            values.append(cosine(step, rows(ups).mean(0)))
        found[perturbations] = sum(values) / len(values)
    assert found["shared"] == pytest.approx(math.sqrt(5 / (defense.wire.n + 5)), rel=0.25)
    assert found["client"] > 1.8 * found["shared"]


def test_a_simulated_run_is_marked():
    assert make(law=True).warnings([])
    assert not make().warnings([])
