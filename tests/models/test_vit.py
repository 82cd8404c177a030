"""The vision transformer: its size, PyTorch's own layers beside it, and the images and options that it takes."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

from fedarena.core.errors import UserError
from fedarena.core.registry import find
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.models.attention import FixedPositions
from fedarena.models.cards.vit import CARD, Options
from fedarena.models.vit import Patches, ViT, sines


def made(shape: tuple[int, ...] = (3, 12, 8), **options: Any) -> tuple[nn.Module, Tensors]:
    model = ViT(Options(**{"width": 8, "heads": 2} | options))
    module = model.module(shape, 5)
    return module, model.init(module, Rng(0).torch())


def images(*shape: int) -> Tensor:
    return torch.rand(*shape, generator=Rng(1).torch())


def test_the_count_of_the_card() -> None:
    assert find("model", "vit") is CARD
    total = sum(p.numel() for p in ViT(Options()).module((1, 28, 28), 10).parameters())
    assert CARD.check.startswith(f"{total:,} parameters")


def test_patches_are_those_of_unfold() -> None:
    x = images(2, 3, 12, 8)
    torch.testing.assert_close(Patches(4)(x), F.unfold(x, 4, stride=4).transpose(1, 2), rtol=0, atol=0)


def test_the_model_agrees_with_pytorchs_own_layers() -> None:
    """A convolution over patches, encoder layers and the mean token, with the parameters of ours."""
    module, p = made()
    x = images(2, 3, 12, 8)
    kernels = p["embed.weight"].reshape(8, 3, 2, 2)
    z = F.conv2d((x - 0.5) / 0.5, kernels, p["embed.bias"], stride=2).flatten(2).transpose(1, 2)
    z = z + p["positions.table.weight"].T
    for name in ("block1", "block2"):
        layer = nn.TransformerEncoderLayer(8, 2, 32, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        own = {n.removeprefix(f"{name}."): t for n, t in p.items() if n.startswith(name)}
        theirs = dict(layer.state_dict())
        for kind in ("weight", "bias"):
            theirs[f"self_attn.in_proj_{kind}"] = torch.cat([own[f"attention.{n}.{kind}"] for n in "qkv"])
            theirs[f"self_attn.out_proj.{kind}"] = own[f"attention.o.{kind}"]
            theirs[f"linear1.{kind}"], theirs[f"linear2.{kind}"] = own[f"mlp.up.{kind}"], own[f"mlp.down.{kind}"]
        layer.load_state_dict(theirs)
        z = layer(z)
    wanted = F.linear(F.layer_norm(z, (8,)).mean(1), p["out.weight"], p["out.bias"])
    torch.testing.assert_close(functional_call(module, p, (x,)), wanted)


def test_fixed_positions_are_sines_and_cosines() -> None:
    e = FixedPositions(sines(7, 6))(torch.zeros(1, 7, 6))[0]
    for place in range(7):
        for i in range(3):
            angle = place / 10_000 ** (2 * i / 6)
            assert e[place, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert e[place, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-6)


@pytest.mark.parametrize("positions", ["trained", "sines"])
def test_positions_tell_where_a_patch_stands(positions: str) -> None:
    module, p = made((1, 8, 8), positions=positions)
    assert ("positions.table.weight" in p) == (positions == "trained")
    x = images(1, 1, 8, 8)
    outputs = [functional_call(module, p, (image,)) for image in (x, x.roll(2, -1))]
    assert (outputs[0] - outputs[1]).norm() > 1e-3


@pytest.mark.parametrize(("shape", "tokens"), [((1, 8, 8), 16), ((1, 28, 28), 49), ((3, 32, 32), 64)])
def test_patches_fit_the_usual_images(shape: tuple[int, ...], tokens: int) -> None:
    assert made(shape)[1]["positions.table.weight"].shape == (8, tokens)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"patch": 3}, "model vit: option 'patch' is 3, allowed: a divisor of both sides of 12x8 images"),
        ({"heads": 3}, "model vit: option 'heads' is 3, allowed: a divisor of the width 8"),
    ],
)
def test_what_does_not_divide_is_refused(options: dict[str, int], told: str) -> None:
    with pytest.raises(UserError) as error:
        made(**options)
    assert str(error.value) == told
