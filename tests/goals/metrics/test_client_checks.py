"""Checks that a client could make of a broadcast: known answers, and none on an honest model."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from fedarena.core import registry
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.goals.metrics.client_checks import CHECKS
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Task


def task_of(model: str = "mlp") -> tuple[Task, Tensors]:
    architecture = registry.find("model", model).load()(registry.find("model", model).parse({}))
    shape = (1, 28, 28)
    task = Task(architecture.module(shape, 10), input_shape=shape, n_classes=10, sizes=(8,), schedule=Schedule())
    return task, architecture.init(task.model, Rng(0).child("init").torch())


def batch() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    return torch.rand(8, 1, 28, 28, generator=generator), torch.randint(10, (8,), generator=generator)


def fired(received: Callable[[Tensors], Tensors], model: str = "mlp") -> set[str]:
    task, honest = task_of(model)
    x, y = batch()
    return {name for name, check in CHECKS.items() if check(task, received(dict(honest)), honest, x, y)}


@pytest.mark.parametrize("model", ["mlp", "cnn"])
def test_none_fires_on_the_honest_model(model: str) -> None:
    assert fired(lambda params: params, model) == set()


def test_an_honest_model_can_have_a_large_loss() -> None:
    """DLG's network begins with large parameters. So honest rounds stand beside each check."""
    assert fired(lambda params: params, "lenet-dlg") == {"loss"}


def scaled(names: tuple[str, ...], factor: float) -> Callable[[Tensors], Tensors]:
    return lambda params: {name: p * factor if name in names else p for name, p in params.items()}


def test_a_longer_model_is_noticed() -> None:
    task, _ = task_of()
    assert "norm" in fired(scaled(tuple(n for n, _ in task.model.named_parameters()), 2.1))
    assert "norm" not in fired(scaled(tuple(n for n, _ in task.model.named_parameters()), 1.9))


def test_a_model_that_is_sure_and_wrong_is_noticed() -> None:
    bias = torch.zeros(10)
    bias[batch()[1].bincount(minlength=10).argmin()] = 100.0
    assert "loss" in fired(lambda params: params | {"out.bias": bias})


def test_a_loss_that_is_no_number_is_noticed() -> None:
    assert "loss" in fired(lambda params: params | {"out.bias": torch.full((10,), float("inf"))})


def test_units_that_are_all_inactive_are_noticed() -> None:
    assert "dead" in fired(lambda params: params | {"fc1.bias": torch.full_like(params["fc1.bias"], -100.0)})


def test_a_layer_of_equal_rows_is_noticed() -> None:
    def equal(params: Tensors) -> Tensors:
        rows = params["fc1.weight"][:1] * torch.linspace(-2, 2, len(params["fc1.weight"]))[:, None]
        return params | {"fc1.weight": rows}

    assert "alike" in fired(equal)


def test_half_of_the_rows_may_have_a_like() -> None:
    def half(params: Tensors) -> Tensors:
        rows = params["fc1.weight"].clone()
        rows[: len(rows) // 2] = rows[0]
        return params | {"fc1.weight": rows}

    assert "alike" not in fired(half)
