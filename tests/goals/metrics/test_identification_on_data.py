"""On real data: what needs no upload identifies at chance, and faint noise hides nobody."""

from __future__ import annotations

import pytest
import torch
from helpers.paths import DATA
from scipy.stats import binomtest

from fedarena.core.rng import Rng
from fedarena.goals.metrics.identification import (
    Owned,
    chance_in_batches,
    draw_decoys,
    identified,
    identified_in_batches,
)
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


@pytest.mark.parametrize(("n", "guessed"), [(60, 60), (66, 60), (54, 60)])
def test_other_samples_name_a_batch_by_chance(n: int, guessed: int) -> None:
    """The held-out digits, which the attacker owns, as the guess at batches of training samples."""
    problem = build(usual_problem({"dataset": "digits", "model": "mlp", "clients": "2"}, {}), 0)
    truths, guesses = [], []
    for i in range(10):
        order = torch.randperm(len(problem.x), generator=Rng(i).child("victims").torch())[:n]
        held = torch.randint(len(problem.x_test), (guessed,), generator=Rng(i).child("guess").torch())
        truths.append((problem.x[order].float() / problem.scale, problem.y[order]))
        guesses.append(problem.x_test[held].float() / problem.scale)
    decoys = draw_decoys(truths, problem, Owned(NONE, torch.arange(len(problem.x_test))), Rng(12))
    found = int(identified_in_batches(guesses, [x for x, _ in truths], decoys).sum())
    chance = chance_in_batches([guessed] * 10, [n] * 10, decoys)
    assert chance == pytest.approx(max(1, n / guessed) / 100)
    assert binomtest(found, 10 * min(n, guessed), chance, "greater").pvalue > 0.01
