"""Which models are chains of layers that can be undone, and how activations are."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from fedarena.attacks.reconstruction.helpers.layer_chain import activation_of, chain_of
from fedarena.core.registry import find
from fedarena.core.rng import Rng


@pytest.mark.parametrize("module", [nn.LeakyReLU(0.1), nn.ELU(0.7), nn.Sigmoid(), nn.Tanh(), nn.ReLU()])
def test_an_activation_is_undone_where_its_slope_is_not_zero(module: nn.Module) -> None:
    z = (3 * torch.randn(200, generator=Rng(0).torch(), dtype=torch.float64)).requires_grad_()
    h = module(z)
    (slope,) = torch.autograd.grad(h.sum(), z)
    activation = activation_of(module)
    assert activation is not None
    found = activation.slope(h.detach())
    torch.testing.assert_close(found, slope, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(activation.undo(h.detach())[found > 0], z.detach()[found > 0])


@pytest.mark.parametrize(
    "name",
    ["lenet-dlg", "mlp", "cnn"],
)
def test_the_chains_of_this_package_are_found(name: str) -> None:
    card = find("model", name)
    model = card.load()(card.parse({})).module((1, 28, 28), 10)
    chain = chain_of(model, (1, 28, 28))
    assert not isinstance(chain, str), chain
    assert [link.name for link in chain.links] == [
        n.removesuffix(".weight") for n, _ in model.named_parameters() if "bias" not in n
    ]


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(18, 3)), "MaxPool2d"),
        (nn.Sequential(nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.Flatten(), nn.Linear(144, 3)), "GroupNorm"),
        (nn.Sequential(nn.Conv2d(1, 4, 3), nn.SELU(), nn.Flatten(), nn.Linear(144, 3)), "SELU"),
        (nn.Sequential(nn.Conv2d(1, 4, 3, padding="same"), nn.Flatten(), nn.Linear(256, 3)), "layer 0 (Conv2d)"),
        (nn.Sequential(nn.Linear(8, 3), nn.Flatten(), nn.Linear(24, 3)), "layer 0 (Linear)"),
        (nn.ModuleDict({"a": nn.Linear(3, 3)}), "no plain chain"),
    ],
)
def test_another_model_is_refused_with_what_it_has(model: nn.Module, reason: str) -> None:
    found = chain_of(model, (1, 8, 8))
    assert isinstance(found, str)
    assert reason in found


def test_a_layer_that_occurs_twice_is_refused() -> None:
    twice = nn.Linear(4, 4)
    assert "occurs twice" in str(chain_of(nn.Sequential(twice, nn.ReLU(), twice), (4,)))
