"""The equations of one layer, against autograd, and against their plain form."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fedarena.attacks.reconstruction.helpers.layer_input import (
    backward,
    convolution_input,
    dense_input,
    gradient_matrix,
    solve,
    weight_matrix,
)
from fedarena.core.rng import Rng

LAYERS = [nn.Conv2d(2, 5, 3, 2, 1), nn.Conv2d(3, 4, (2, 3), (1, 2), (0, 1)), nn.Conv2d(1, 3, 2, 1, 2, dilation=2)]


def normal(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=Rng(seed).torch(), dtype=torch.float64)


def played(layer: nn.Conv2d, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """W, z without the bias, δ and ∂L/∂W of L = ⟨δ, z⟩."""
    weight = normal(1, *layer.weight.shape).requires_grad_()
    z = F.conv2d(x[None], weight, None, layer.stride, layer.padding, layer.dilation)[0]
    delta = normal(2, *z.shape)
    (gradient,) = torch.autograd.grad((delta * z).sum(), weight)
    return weight.detach(), z.detach(), delta, gradient


@pytest.mark.parametrize("layer", LAYERS)
def test_both_matrices_are_those_of_the_layer(layer: nn.Conv2d) -> None:
    x = normal(0, layer.in_channels, 6, 7)
    weight, z, delta, gradient = played(layer, x)
    torch.testing.assert_close(weight_matrix(layer, x.shape, weight) @ x.flatten(), z.flatten())
    per_channel = gradient_matrix(layer, x.shape, delta)
    for c in range(layer.in_channels):
        torch.testing.assert_close(per_channel @ x[c].flatten(), gradient[:, c].flatten())


@pytest.mark.parametrize("layer", [*LAYERS, nn.Linear(6, 4)])
def test_what_goes_backward_is_the_gradient_of_the_input(layer: nn.Conv2d | nn.Linear) -> None:
    shape = (6,) if isinstance(layer, nn.Linear) else (layer.in_channels, 6, 7)
    layer, x = layer.double(), normal(0, *shape).requires_grad_()
    z = layer(x[None])[0]
    delta = normal(1, *z.shape)
    (expected,) = torch.autograd.grad((delta * z).sum(), x)
    torch.testing.assert_close(backward(layer, layer.weight.detach(), delta, shape), expected)
    layer.float()


@pytest.mark.parametrize("told", [0.0, 0.5, 1.0])
def test_a_convolutions_input_solves_all_its_equations_in_plain_form(told: float) -> None:
    """The solution and the rank of every equation written down, without any of the shortcuts."""
    layer, x = nn.Conv2d(3, 5, 3, 2, 1), normal(0, 3, 6, 6)
    weight, z, delta, gradient = played(layer, x)
    slope = (torch.arange(z.numel()) < told * z.numel()).double().reshape(z.shape)
    found, rank = convolution_input(layer, x.shape, weight, gradient, z, slope, delta)
    seen = slope.flatten() > 0
    rows = weight_matrix(layer, x.shape, weight)[seen] / z.abs().max()
    per_channel = torch.block_diag(*[gradient_matrix(layer, x.shape, delta)] * 3) / gradient.abs().max()
    plain = torch.cat([rows, per_channel])
    right = plain @ x.flatten()
    assert rank.rank == int(torch.linalg.matrix_rank(plain, rtol=1e-7))
    assert rank.unknowns == 108
    assert (rank.by_weights, rank.by_gradient) == (int(slope.sum()), 135)
    if rank.open:
        assert found is None
    else:
        assert found is not None
        torch.testing.assert_close(found.flatten(), torch.linalg.pinv(plain) @ right, rtol=0, atol=1e-7)
    assert (rank.open > 0) == (told == 0)


def test_a_dense_layers_input_is_the_ratio_of_its_gradients() -> None:
    x, delta = normal(0, 7), normal(1, 5)
    torch.testing.assert_close(dense_input(torch.outer(delta, x), delta), x)


def test_what_is_nearly_dependent_counts_as_open() -> None:
    ones = torch.ones(3, dtype=torch.float64)
    assert solve(torch.diag(torch.tensor([1.0, 1e-3, 1e-9], dtype=torch.float64)), ones) == (None, 2)
    x, rank = solve(torch.diag(torch.tensor([1.0, 1e-3, 1e-6], dtype=torch.float64)), ones)
    assert rank == 3
    assert x is not None
    torch.testing.assert_close(x, torch.tensor([1.0, 1e3, 1e6], dtype=torch.float64))


def test_fewer_equations_than_inputs_determine_none() -> None:
    assert solve(normal(0, 4, 6), normal(1, 4)) == (None, 4)
