"""Gradient ascent is the protocol's own step on the loss times −k."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from helpers.poisoning import knowledge, make, problem

from fedarena.core import registry
from fedarena.core.rng import Rng
from fedarena.core.tensors import flatten, row
from fedarena.problem.task import Batch, Task
from fedarena.testing.defense_laws import NEAR, most_exact
from fedarena.testing.federations import defense_of, problem_for
from fedarena.testing.law import Method
from fedarena.testing.same import difference

PROTOCOLS = registry.registries()["defense"].names()


def ascending(batch: Batch, scale: float = 3.0) -> Batch:
    return make("gradient-ascent", knowledge(), scale=scale).batch(batch, 0, 0, Rng(0))


def test_the_loss_and_its_gradient_are_minus_k_times_the_true_ones() -> None:
    p = problem()
    batch = p.batch(0, Rng(0))
    (x, y), (_, poisoned) = batch.images(), ascending(batch).images()
    task: Task = p.task
    assert float(task.loss(p.init, x, poisoned)) == pytest.approx(-3 * float(task.loss(p.init, x, y)), rel=1e-5)
    true, found = (flatten(torch.func.grad(task.loss)(p.init, x, labels)) for labels in (y, poisoned))
    torch.testing.assert_close(found, -3 * true, rtol=1e-4, atol=1e-6)


def test_numbers_are_turned_around() -> None:
    on = knowledge()
    attack = make("gradient-ascent", replace(on, task=replace(on.task, n_classes=0)), scale=2.0)
    batch = Batch(torch.zeros(1, 2, 1, 8, 8), torch.tensor([[0.5, 2.0]]))
    assert attack.batch(batch, 0, 0, Rng(0)).y.tolist() == [[-1.0, -4.0]]


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_protocol_takes_it_in_its_fast_form_as_in_its_slow_one(name: str) -> None:
    """One client of three ascends; all labels of a round are of one kind."""
    card = registry.find("defense", name)
    method = most_exact(Method(card, card.parse({})))
    p = problem_for(method, batch_size=2)
    defense = defense_of(method, p.task)
    draws = [(c, Rng(1).child(c)) for c in range(3)]
    batches = p.batches(draws, defense.sampling == "poisson")
    batches = [b.with_targets(p.task.n_classes) for b in (ascending(batches[0]), *batches[1:])]
    down = defense.broadcast(defense.init(p.init, Rng(0), p.auxiliary), Rng(0)).down
    noises = [defense.draw(rng.child("noise")) for _, rng in draws]
    ups, _ = defense.clients(down, batches, [{}, {}, {}], noises)
    for c, (batch, noise) in enumerate(zip(batches, noises, strict=True)):
        assert difference(row(ups, c), defense.client(down, batch, {}, noise)[0]) <= NEAR
