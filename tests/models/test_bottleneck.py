"""The variational bottleneck: outputs, loss and uploads by hand, its noise, and models that have none."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from helpers.bottleneck import BETA, K, by_hand, loss_by_hand, net
from helpers.dbcl import parameters
from torch import Tensor

from fedarena.core import registry
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, flatten, row
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.federation import compose
from fedarena.federation import rounds as federation
from fedarena.models.bottleneck import Bottleneck
from fedarena.models.drawn import draw_masks, has_drawn
from fedarena.models.module_check import require_pure
from fedarena.problem.problem import Problem, build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import usual_problem
from fedarena.problem.task import Batch, Task

NOISE = "bottleneck.noise"


def task(**schedule: Any) -> Task:
    times = Schedule(**{"rounds": 4, "batch_size": 4, "lr": 0.3, **schedule})
    return Task(net(), input_shape=(12,), n_classes=3, sizes=(8, 8), schedule=times)


def work(steps: int) -> Batch:
    g = Rng(5).torch()
    x, y = torch.rand(steps, 4, 12, generator=g), torch.randint(3, (steps, 4), generator=g)
    return Batch(x, y, {NOISE: torch.randn(steps, 4, K, generator=g)})


def upload_by_hand(params: Tensors, batch: Batch, rate: float) -> Tensor:
    now = {name: t.double() for name, t in params.items()}
    for x, y, noise in zip(batch.x.double(), batch.y, batch.masks[NOISE].double(), strict=True):
        leaves = {name: w.clone().requires_grad_() for name, w in now.items()}
        gradients = torch.autograd.grad(loss_by_hand(leaves, x, y, noise), list(leaves.values()))
        now = {name: w - rate * g for (name, w), g in zip(now.items(), gradients, strict=True)}
    return flatten(params).double() - flatten(now)


@pytest.mark.parametrize("local_epochs", [0, 1])
def test_an_upload_is_that_of_the_network_by_hand(local_epochs: int) -> None:
    """One client alone, and the fast form of several."""
    given = task(local_epochs=local_epochs)
    params, batch = parameters(given.model, 0), work(2 if local_epochs else 1)
    defense = FedAvg(None, given)
    wanted = upload_by_hand(params, batch, 0.3 if local_epochs else 1.0)
    alone = flatten(defense.client(params, batch, {}, {})[0]).double()
    both = defense.clients(params, [batch, batch], [{}, {}], [{}, {}])[0]
    torch.testing.assert_close(alone, wanted, rtol=1e-3, atol=1e-6)
    torch.testing.assert_close(flatten(row(both, 1)).double(), wanted, rtol=1e-3, atol=1e-6)


def test_evaluation_takes_the_mean_code() -> None:
    given = task()
    params, x = parameters(given.model, 1), torch.rand(6, 12, generator=Rng(0).torch())
    torch.testing.assert_close(given.outputs(params, x), by_hand(params, x, 0.0)[0])
    noise = torch.ones(6, K)
    torch.testing.assert_close(given.outputs({**params, NOISE: noise}, x), by_hand(params, x, noise)[0])
    assert float(given.loss(params, x, torch.zeros(6, dtype=torch.int64))) == pytest.approx(
        float(loss_by_hand(params, x, torch.zeros(6, dtype=torch.int64), 0.0)), rel=1e-5
    )


def test_the_noise_is_standard_normal_and_each_sample_has_its_own() -> None:
    noise = draw_masks(net(), (50, 40), Rng(3))[NOISE]
    assert noise.shape == (50, 40, K)
    count = noise.numel()
    assert abs(float(noise.mean())) < 5 / count**0.5
    assert abs(float(noise.var()) - 1) < 5 * (2 / count) ** 0.5
    assert len(noise.flatten().unique()) > 0.99 * count


def problem(model: str, **options: str) -> Problem:
    training = {"rounds": "2", "batch_size": "2"}
    return build(usual_problem({"model": model, "clients": "3"}, {"training": training, "model": options}), 0)


@pytest.mark.parametrize("model", ["mlp", "cnn"])
def test_clients_draw_noise_of_their_own_in_each_round(model: str) -> None:
    p = problem(model, bottleneck="6")
    made = compose.make_defense(compose.parse_defense("fedavg"), p.task)
    run = federation.run(made, p, Rng(0).child("federation"), watch=range(2))
    drawn = [batch.masks[NOISE] for r in run.rounds for batch in r.batches]
    assert {tuple(d.shape) for d in drawn} == {(1, 2, 6)}
    assert len({tuple(d.flatten().tolist()) for d in drawn}) == 6
    first = run.rounds[0]
    alone = made.client(first.down, first.batches[0], {}, {})[0]
    torch.testing.assert_close(flatten(row(first.ups, 0)), flatten(alone), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("model", ["mlp", "cnn"])
def test_a_bottleneck_of_0_is_none(model: str) -> None:
    plain, extended = problem(model).task.model, problem(model, bottleneck="6").task.model
    assert not has_drawn(plain)
    assert has_drawn(extended)
    more = {"encoder.weight", "encoder.bias", "decoder.weight", "decoder.bias"}
    assert {n for n, _ in extended.named_parameters()} - {n for n, _ in plain.named_parameters()} == more
    require_pure(extended, (1, 8, 8))


def test_a_standard_deviation_is_never_0() -> None:
    layer = Bottleneck(2, BETA)
    assert torch.isfinite(layer.penalty(torch.tensor([[0.0, 0.0, -500.0, -500.0]])))


def test_beta_without_a_bottleneck_is_refused() -> None:
    with pytest.raises(Exception, match="option 'beta'"):
        registry.find("model", "mlp").parse({"beta": "0.1"})
