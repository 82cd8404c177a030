"""DBCL's network for LFW and the small CNN: sizes by hand, their options, and the images that they take."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.func import functional_call

from fedarena.core.errors import UserError
from fedarena.core.registry import find
from fedarena.core.rng import Rng

LFW, UTKFACE = (1, 62, 47), (3, 32, 32)


def make(shape: tuple[int, ...], model: str = "cnn-lfw", classes: int = 2, **text: str) -> nn.Module:
    card = find("model", model)
    made: nn.Module = card.load()(card.parse(text)).module(shape, classes)
    return made


def convolution(before: int, after: int) -> int:
    return 9 * before * after + after


def dense(before: int, after: int) -> int:
    return before * after + after


def test_a_norm_of_the_small_cnn_stands_before_each_relu() -> None:
    plain, normed = make((1, 8, 8), "cnn", 10), make((1, 8, 8), "cnn", 10, norm="batch")
    assert {n: p.shape for n, p in plain.named_parameters()} == {n: p.shape for n, p in normed.named_parameters()}
    kinds = [type(m) for m in normed.children()]
    assert [kinds[i + 1 : i + 3] for i, kind in enumerate(kinds) if kind is nn.Conv2d] == [
        [nn.BatchNorm2d, nn.ReLU]
    ] * 2


def test_a_block_of_the_small_cnn_goes_from_pixels_to_pixels() -> None:
    plain, blocked = make((3, 8, 8), "cnn", 10), make((3, 8, 8), "cnn", 10, block="20")
    assert [type(m) for m in blocked.children()][1:6] == [nn.Flatten, nn.Linear, nn.ReLU, nn.Linear, nn.Unflatten]
    added = sum(p.numel() for p in blocked.parameters()) - sum(p.numel() for p in plain.parameters())
    assert added == dense(192, 20) + dense(20, 192)
    assert blocked(torch.rand(2, 3, 8, 8)).shape == (2, 10)


@pytest.mark.parametrize(
    ("shape", "options", "convolutions", "layers"),
    [
        # three poolings: 62×47 → 31×23 → 15×11 → 7×5
        (LFW, {}, [1, 64, 64, 128], [7 * 5 * 128, 32, 32, 2]),
        (UTKFACE, {}, [3, 64, 64, 128], [4 * 4 * 128, 32, 32, 2]),
        (LFW, {"channels": "32,64,128", "widths": "256"}, [1, 32, 64, 128], [7 * 5 * 128, 256, 2]),
        ((1, 8, 8), {"channels": "4,6", "widths": "5"}, [1, 4, 6], [2 * 2 * 6, 5, 2]),
    ],
)
def test_layers_and_parameters(
    shape: tuple[int, ...], options: dict[str, str], convolutions: list[int], layers: list[int]
) -> None:
    module = make(shape, **options)
    assert isinstance(module, nn.Sequential)
    convs = [m for m in module if isinstance(m, nn.Conv2d)]
    denses = [m for m in module if isinstance(m, nn.Linear)]
    assert [convs[0].in_channels, *(m.out_channels for m in convs)] == convolutions
    assert [denses[0].in_features, *(m.out_features for m in denses)] == layers
    by_hand = sum(map(convolution, convolutions, convolutions[1:])) + sum(map(dense, layers, layers[1:]))
    assert sum(p.numel() for p in module.parameters()) == by_hand


def test_the_count_of_the_card() -> None:
    total = sum(p.numel() for p in make(LFW).parameters())
    assert total == 255_938
    assert find("model", "cnn-lfw").check.startswith(f"{total:,} parameters")


def test_every_convolution_is_rectified_and_pooled_and_the_output_is_not() -> None:
    kinds = [type(m) for m in make(LFW).children()]
    block, hidden = [nn.Conv2d, nn.ReLU, nn.MaxPool2d], [nn.Linear, nn.ReLU]
    assert kinds == 3 * block + [nn.Flatten] + 2 * hidden + [nn.Linear]


@pytest.mark.parametrize("shape", [LFW, UTKFACE])
def test_faces_become_two_logits_that_differ(shape: tuple[int, ...]) -> None:
    card = find("model", "cnn-lfw")
    model = card.load()(card.parse({}))
    module = model.module(shape, 2)
    out = functional_call(
        module, model.init(module, Rng(0).torch()), (torch.rand(3, *shape, generator=Rng(1).torch()),)
    )
    assert out.shape == (3, 2)
    assert len(out.unique()) == 6


def test_images_that_pooling_would_use_up_are_refused() -> None:
    assert make((1, 8, 8))(torch.zeros(1, 1, 8, 8)).shape == (1, 2)
    with pytest.raises(UserError, match=r"cnn-lfw, which takes images of at least 8x8 pixels; inputs are 1x8x7"):
        make((1, 8, 7))
    with pytest.raises(UserError, match="widths"):
        make(LFW, widths="32,0")


def test_the_pooled_cnn_has_the_parameters_of_both_studies() -> None:
    module = make((1, 28, 28), "cnn-pooled", 10)
    assert find("model", "cnn-pooled").check.startswith(f"{sum(p.numel() for p in module.parameters()):,} parameters")
    small = make((1, 28, 28), "cnn-pooled", 10, channels="16,32", widths="128")
    assert sum(p.numel() for p in small.parameters()) == 80_202
    block, hidden = [nn.Conv2d, nn.ReLU, nn.MaxPool2d], [nn.Linear, nn.ReLU]
    kinds = [type(m) for m in module.children()][1:]
    assert kinds == 2 * block + [nn.Flatten] + hidden + [nn.Linear]


@pytest.mark.parametrize(("channels", "smallest"), [("4", 6), ("4,4", 16), ("4,4,4", 36)])
def test_the_pooled_cnn_takes_all_images_that_leave_a_pixel(channels: str, smallest: int) -> None:
    made = make((1, smallest, smallest), "cnn-pooled", channels=channels)
    assert made(torch.zeros(1, 1, smallest, smallest)).shape == (1, 2)
    with pytest.raises(UserError, match=f"cnn-pooled, which takes images of at least {smallest}x{smallest} pixels"):
        make((1, smallest, smallest - 1), "cnn-pooled", channels=channels)


def test_the_small_cnn_halves_its_images() -> None:
    module = make((1, 28, 28), "cnn", 10)
    assert find("model", "cnn").check.startswith(f"{sum(p.numel() for p in module.parameters()):,} parameters")
    assert isinstance(module, nn.Sequential)
    shapes, x = [], torch.zeros(1, 1, 28, 28)
    for layer in module:
        x = layer(x)
        shapes += [tuple(x.shape[1:])] * isinstance(layer, nn.Conv2d)
    assert shapes == [(8, 14, 14), (16, 7, 7)]
    assert make((3, 32, 32), "cnn", 10, channels="4,4,4")(torch.zeros(1, 3, 32, 32)).shape == (1, 10)
    with pytest.raises(UserError, match="cnn, which takes images of at least 4x4 pixels; inputs are 1x3x9"):
        make((1, 3, 9), "cnn")


@pytest.mark.parametrize(("model", "side"), [("cnn", 8), ("cnn-pooled", 16)])
def test_a_network_normalises(model: str, side: int) -> None:
    plain, shifted = (make((1, side, side), model, mean=mean, std="0.5") for mean in ("0", "0.25"))
    for module in (plain, shifted):
        for i, p in enumerate(module.parameters()):
            torch.nn.init.normal_(p, generator=Rng(i).torch())
    x = torch.rand(2, 1, side, side, generator=Rng(9).torch())
    assert torch.allclose(shifted(x + 0.25), plain(x), atol=1e-4)
    assert not torch.allclose(shifted(x), plain(x), atol=1e-2)
