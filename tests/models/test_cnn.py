"""DBCL's network for LFW: sizes by hand, its options, and the images that it takes."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.func import functional_call

from fedarena.core.errors import UserError
from fedarena.core.registry import find
from fedarena.core.rng import Rng

LFW, UTKFACE = (1, 62, 47), (3, 32, 32)


def make(shape: tuple[int, ...], **text: str) -> nn.Module:
    card = find("model", "cnn-lfw")
    made: nn.Module = card.load()(card.parse(text)).module(shape, 2)
    return made


def convolution(before: int, after: int) -> int:
    return 9 * before * after + after


def dense(before: int, after: int) -> int:
    return before * after + after


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
