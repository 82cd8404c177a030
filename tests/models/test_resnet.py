"""The residual network: the papers' sizes, its two ways to join, traceable, and a start from which it can train."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn
from torch.func import functional_call

from fedarena.core.rng import Rng
from fedarena.models.architecture import draw
from fedarena.models.cards.resnet import CARD, Options
from fedarena.models.resnet import ResNet

CIFAR = (3, 32, 32)
SMALL = (2, 12, 9)


def made(shape: tuple[int, ...] = SMALL, n_classes: int = 4, **options: Any) -> tuple[nn.Module, dict[str, Tensor]]:
    model = ResNet(Options(**options))
    module = model.module(shape, n_classes)
    return module, model.init(module, Rng(0).torch())


def images(n: int, *shape: int) -> Tensor:
    return torch.rand(n, *shape, generator=Rng(1).torch())


@pytest.mark.parametrize(
    ("depth", "skip", "parameters"),
    [
        # He et al., Table 6, in millions: 0.27, 0.46, 0.85
        (20, "add", 270_896),
        (32, "add", 464_432),
        (56, "add", 851_504),
        (20, "concat", 247_744),
        (32, "concat", 391_888),
        (56, "concat", 680_176),
    ],
)
def test_sizes_are_those_on_the_card(depth: int, skip: str, parameters: int) -> None:
    module, params = made(CIFAR, 10, depth=depth, skip=skip)
    assert sum(p.numel() for p in params.values()) == parameters
    assert f"{parameters:,}" in CARD.check + str(CARD.facts)
    layers = [m for m in module.modules() if isinstance(m, nn.Conv2d | nn.Linear)]
    assert len([m for m in layers if isinstance(m, nn.Linear) or m.kernel_size == (3, 3)]) == depth
    assert len([m for m in layers if isinstance(m, nn.Conv2d) and m.kernel_size == (1, 1)]) == 2


def plain(params: dict[str, Tensor], x: Tensor, concat: bool, n: int = 3) -> Tensor:
    """The network written out with functions."""
    h = F.conv2d(x, params["conv.weight"], padding=1).relu()
    for stage in (1, 2, 3):
        for i in range(1, n + 1):
            name, stride = f"block{stage}_{i}", 2 if stage > 1 and i == 1 else 1
            branch = F.conv2d(h, params[f"{name}.conv1.weight"], stride=stride, padding=1).relu()
            branch = F.conv2d(branch, params[f"{name}.conv2.weight"], padding=1)
            kept = h if stride == 1 else F.conv2d(h, params[f"{name}.shortcut.weight"], stride=2)
            h = torch.cat([kept, branch], 1).relu() if concat else (kept + branch).relu()
    return h.mean((2, 3)) @ params["out.weight"].T


@pytest.mark.parametrize("skip", ["add", "concat"])
def test_it_is_what_its_docstring_says(skip: str) -> None:
    module, params = made(skip=skip)
    x = images(5, *SMALL)
    out = functional_call(module, params, (x,))
    assert out.shape == (5, 4)
    assert torch.allclose(out, plain(params, x, skip == "concat"), rtol=1e-5, atol=1e-6)
    assert out.std() > 0.01


@pytest.mark.parametrize("skip", ["add", "concat"])
def test_it_can_be_traced(skip: str) -> None:
    module, params = made(skip=skip)
    traced = fx.symbolic_trace(module)
    x = images(3, *SMALL)
    assert torch.equal(functional_call(traced, params, (x,)), functional_call(module, params, (x,)))
    joins = [n for n in traced.graph.nodes if n.op == "call_function"]
    assert len(joins) == 9
    assert all((n.target is torch.cat) == (skip == "concat") for n in joins)


@pytest.mark.parametrize("skip", ["add", "concat"])
@pytest.mark.parametrize("bias", [False, True])
def test_biases_are_in_all_layers_or_in_none(skip: str, bias: bool) -> None:
    module, params = made(skip=skip, bias=bias)
    layers = [name for name, m in module.named_modules() if isinstance(m, nn.Conv2d | nn.Linear)]
    wanted = [f"{name}.{part}" for name in layers for part in (("weight", "bias") if bias else ("weight",))]
    assert list(params) == wanted
    x = images(2, *SMALL)
    if not bias:  # then positive scaling of the input passes through, which PBPFL's masks rest on
        scaled = functional_call(module, params, (3 * x,))
        assert torch.allclose(scaled, 3 * functional_call(module, params, (x,)), rtol=1e-4)
    else:
        moved = params | {"conv.bias": params["conv.bias"] + 1}
        assert not torch.allclose(functional_call(module, moved, (x,)), functional_call(module, params, (x,)))


OTHER: dict[str, Any] = {
    "depth": 32,
    "skip": "concat",
    "bias": True,
    "init": "default",
    "branch_scale": 0.5,
    "norm": "group",
}


@pytest.mark.parametrize("name", [f.name for f in dataclasses.fields(Options)])
def test_every_option_acts(name: str) -> None:
    x = images(2, *SMALL)

    def outcome(**options: Any) -> tuple[int, Tensor]:
        module, params = made(**options)
        return len(params), functional_call(module, params, (x,))

    usual, changed = outcome(), outcome(**{name: OTHER[name]})
    assert usual[0] != changed[0] or not torch.allclose(usual[1], changed[1], rtol=1e-2)


def test_kaiming_has_its_variance_for_dense_layers_too_and_zero_biases() -> None:
    layers = nn.Sequential(nn.Conv2d(20, 64, 5), nn.Linear(300, 500))
    params = draw(layers, "kaiming", Rng(0).torch())
    for name, fan_in in (("0", 500), ("1", 300)):
        w = params[f"{name}.weight"]
        assert w.var().item() == pytest.approx(2 / fan_in, rel=0.03)
        assert w.abs().max() > 3 * w.std()  # normal, not uniform
        assert not params[f"{name}.bias"].any()


@pytest.mark.parametrize(("skip", "blocks", "factor"), [("add", 9, 1 / 9), ("concat", 9, 1.0)])
def test_the_usual_factor_is_on_the_last_convolution_of_every_block_alone(
    skip: str, blocks: int, factor: float
) -> None:
    usual, doubled = (made(skip=skip, branch_scale=scale)[1] for scale in (None, 2.0))
    ratios = {name: (doubled[name] / usual[name]).mean().item() for name in usual}
    last = [name for name in ratios if ".conv2." in name]
    assert len(last) == blocks
    assert all(ratios[name] == pytest.approx(2 / factor if name in last else 1) for name in ratios)


def plain_with_norm(params: dict[str, Tensor], x: Tensor, n: int = 3) -> Tensor:
    """The network with GroupNorm, written out with functions."""

    def normed(h: Tensor, name: str, **how: Any) -> Tensor:
        h = F.conv2d(h, params[f"{name}.layer.weight"], **how)
        parts = h.unflatten(1, (max(2, h.shape[1] // 16), -1))
        mean, var = parts.mean((2, 3, 4), keepdim=True), parts.var((2, 3, 4), keepdim=True, correction=0)
        return ((parts - mean) / (var + 1e-5).sqrt()).flatten(1, 2)

    h = normed(x, "conv", padding=1).relu()
    for stage in (1, 2, 3):
        for i in range(1, n + 1):
            name, stride = f"block{stage}_{i}", 2 if stage > 1 and i == 1 else 1
            branch = normed(h, f"{name}.conv1", stride=stride, padding=1).relu()
            branch = normed(branch, f"{name}.conv2", padding=1)
            h = ((h if stride == 1 else normed(h, f"{name}.shortcut", stride=2)) + branch).relu()
    return h.mean((2, 3)) @ params["out.weight"].T


def test_a_norm_follows_every_convolution_and_no_factor_is_needed() -> None:
    module, params = made(norm="group")
    x = images(5, *SMALL)
    assert torch.allclose(functional_call(module, params, (x,)), plain_with_norm(params, x), rtol=1e-4, atol=1e-5)
    ones, without = made(norm="group", branch_scale=1.0)[1], made(branch_scale=1.0)[1]
    assert all(torch.equal(params[name], ones[name]) for name in ones)
    assert [p.shape for p in params.values()] == [p.shape for p in without.values()]
    assert 0.02 < spread(depth=56, norm="group") < 5


@pytest.mark.parametrize("norm", ["group", "batch"])
def test_channels_that_no_two_groups_divide_can_be_normed(norm: str) -> None:
    module, params = made(skip="concat", norm=norm)  # 16 channels shared out over 3 blocks: 5, 5, 6
    assert functional_call(module, params, (images(5, *SMALL),)).isfinite().all()


def spread(**options: Any) -> float:
    module, params = made(CIFAR, 10, **options)
    with torch.no_grad():
        return float(functional_call(module, params, (images(4, *CIFAR),)).std())


def test_deep_sums_explode_without_the_factor_but_not_with_its_default() -> None:
    assert spread(depth=56, branch_scale=1.0) > 100
    for skip in ("add", "concat"):
        assert 0.02 < spread(depth=56, skip=skip) < 5


@pytest.mark.parametrize("skip", ["add", "concat"])
def test_it_learns_which_half_of_an_image_is_bright(skip: str) -> None:
    shape, n = (1, 8, 8), 64
    x, y = images(n, *shape) * 0.3, torch.arange(n) % 2
    x[y == 0, :, :4] += 0.7
    x[y == 1, :, 4:] += 0.7
    x[:, :, 0] = 0.0  # upside down is not the same picture: pooling forgets the place, a dark edge does not
    module, params = made(shape, 2, skip=skip)
    params = {name: p.requires_grad_() for name, p in params.items()}
    optimizer = torch.optim.Adam(params.values(), 2e-3)
    for _ in range(40):
        optimizer.zero_grad()
        F.cross_entropy(functional_call(module, params, (x,)), y).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    right = functional_call(module, params, (x,)).argmax(1) == y
    assert right.float().mean() > 0.9
