"""The gradient of a loss is that of `torch.func.grad`, whatever surrounds it."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.func import grad, vmap

from fedarena.core.gradients import gradient
from fedarena.core.peak_memory import peak_bytes
from fedarena.core.tensors import Tensors, flatten

PARAMS = {"w": torch.linspace(-1, 1, 12).reshape(3, 4), "b": torch.linspace(0, 1, 3), "unused": torch.ones(2)}
X, Y = torch.linspace(0, 1, 8).reshape(2, 4), torch.tensor([0, 2])


def loss(params: Tensors, x: Tensor, y: Tensor) -> Tensor:
    return torch.nn.functional.cross_entropy((x @ params["w"].T + params["b"]).relu(), y)


def same(found: Tensors, expected: Tensors) -> bool:
    return list(found) == list(expected) and all(torch.equal(t, expected[name]) for name, t in found.items())


def test_it_is_that_of_torch_to_the_last_bit() -> None:
    found = gradient(loss, PARAMS, X, Y)
    assert same(found, grad(loss)(PARAMS, X, Y))
    assert not found["unused"].any()
    assert not any(t.requires_grad for t in (*found.values(), *PARAMS.values()))


def test_it_is_found_where_gradients_are_turned_off() -> None:
    with torch.no_grad():
        assert same(gradient(loss, PARAMS, X, Y), grad(loss)(PARAMS, X, Y))


def test_it_can_be_differentiated_and_vectorised() -> None:
    def length(of: Any, x: Tensor) -> Tensor:
        squared: Tensor = flatten(of(x)).square().sum()
        return squared

    ours, torchs = (lambda x: gradient(loss, PARAMS, x, Y)), (lambda x: grad(loss)(PARAMS, x, Y))
    assert torch.equal(grad(lambda x: length(ours, x))(X), grad(lambda x: length(torchs, x))(X))
    assert grad(lambda x: length(ours, x))(X).any()
    many = torch.stack([X, 2 * X])
    assert same(vmap(ours)(many), vmap(torchs)(many))
    leaf = X.clone().requires_grad_()
    (found,) = torch.autograd.grad(length(ours, leaf), leaf)
    assert torch.equal(found, grad(lambda x: length(torchs, x))(X))
    with torch.no_grad():
        assert not any(t.requires_grad for t in ours(leaf).values())


def test_it_can_be_differentiated_by_parameters_that_follow_from_others() -> None:
    def two_steps(of: Any, scale: Tensor) -> Tensor:
        params = {name: p * scale for name, p in PARAMS.items()}
        once = of(loss)(params, X, Y)
        twice = of(loss)({name: p - once[name] for name, p in params.items()}, X, Y)
        squared: Tensor = flatten(twice).square().sum()
        return squared

    leaf = torch.tensor(0.5, requires_grad=True)
    (found,) = torch.autograd.grad(two_steps(lambda loss: partial(gradient, loss), leaf), leaf)
    assert found
    assert torch.equal(found, grad(partial(two_steps, grad))(torch.tensor(0.5)))


def test_it_takes_the_memory_of_torch_where_memory_is_counted() -> None:
    assert peak_bytes(lambda: gradient(loss, PARAMS, X, Y))[1] == peak_bytes(lambda: grad(loss)(PARAMS, X, Y))[1]


def test_a_loss_that_depends_on_no_parameter_has_none() -> None:
    assert not any(t.any() for t in gradient(lambda params, x: x.sum(), PARAMS, X).values())


def test_a_loss_that_is_no_single_number_is_refused() -> None:
    with pytest.raises(RuntimeError, match="scalar"):
        gradient(lambda params, x: x @ params["w"].T, PARAMS, X)
