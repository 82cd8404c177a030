"""On real data: what needs no upload identifies at chance, and faint noise hides nobody."""

from __future__ import annotations

import pytest
import torch
from helpers.paths import DATA
from scipy.stats import binomtest

from fedarena.core.rng import Rng
from fedarena.goals.metrics.identification import Owned, draw_decoys, identified
from fedarena.goals.metrics.reconstruction import mean_image
from fedarena.problem.problem import build
from fedarena.problem.spec import usual_problem

FILES = {"digits": "", "mnist": "mnist.npz", "usps": "usps.npz", "fashion-mnist": "fashion_mnist.npz",
         "cifar10": "cifar10.npz"}  # fmt: skip
VICTIMS = 200
NONE = torch.empty(0, dtype=torch.int64)


@pytest.mark.parametrize("name", FILES)
def test_only_what_shows_the_victim_identifies_it(name: str) -> None:
    if FILES[name] and not (DATA / FILES[name]).is_file():
        pytest.skip(f"{FILES[name]} is not in FEDARENA_DATA")
    problem = build(usual_problem({"dataset": name, "model": "mlp", "clients": "2"}, {}), 0, DATA)
    order = torch.randperm(len(problem.x), generator=Rng(11).torch())[:VICTIMS]
    x, y = problem.x[order].float() / problem.scale, problem.y[order]
    truths = [(x[i : i + 1], y[i : i + 1]) for i in range(VICTIMS)]
    decoys = draw_decoys(truths, problem, Owned(NONE, NONE), Rng(12))
    assert decoys.same_class == 1
    held = problem.x_test[torch.randint(len(problem.x_test), (VICTIMS,), generator=Rng(13).torch())].double()
    for guess in (mean_image(problem).expand_as(x), held / problem.scale):
        share = float(identified(guess, x, decoys).double().mean())
        assert binomtest(round(share * VICTIMS), VICTIMS, 0.01, "greater").pvalue > 0.001
    noisy = x + 10 ** (-30 / 20) * torch.randn(x.shape, generator=Rng(14).torch())
    assert identified(noisy, x, decoys).double().mean() >= 0.99
