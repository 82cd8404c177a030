"""The transformer for texts: its size, its order of words, and adapters over constants."""

from __future__ import annotations

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
from fedarena.models.module_check import require_fit, require_initial

SHAPE = (5, 11)


def made(shape: tuple[int, ...] = SHAPE, **options: str) -> tuple[nn.Module, Tensors]:
    card = find("model", "transformer")
    architecture = card.load()(card.parse({"width": "8", "heads": "2"} | options))
    module = architecture.module(shape, 3)
    return module, architecture.init(module, Rng(0).torch())


def texts(n: int = 4) -> Tensor:
    return F.one_hot(torch.randint(11, (n, 5), generator=Rng(1).torch()), 11).float()


def out(module: nn.Module, params: Tensors, x: Tensor) -> Any:
    return functional_call(module, params, (x,))


@pytest.mark.parametrize("options", [{}, {"lora": "2"}, {"causal": "False"}, {"layers": "1"}])
def test_every_form_can_be_trained(options: dict[str, str]) -> None:
    module, params = made(**options)
    require_fit(module, SHAPE, 3)
    require_initial(module, params)


def test_the_card_tells_the_number_of_parameters() -> None:
    module, _ = made((7, 165), width="128", heads="4")
    embedding, positions, output = 165 * 128, 7 * 128, 128 * 6 + 6
    block = 4 * (128 * 128 + 128) + 2 * 4 * 128 * 128 + 512 + 128
    of_three = sum(p.numel() for p in module.parameters()) + 3 * (128 + 1)  # 3 classes here, 6 there
    assert of_three == embedding + positions + output + 2 * block
    assert find("model", "transformer").check.startswith(f"{of_three:,} parameters")


def test_a_soft_word_is_the_mean_of_embeddings() -> None:
    module, params = made()
    x = texts(2)
    mixed = functional_call(module.embedding, {"weight": params["embedding.weight"]}, (x.mean(0),))
    each = params["embedding.weight"].T[x.argmax(-1)]
    torch.testing.assert_close(mixed, each.mean(0))


def test_the_order_of_words_matters() -> None:
    module, params = made()
    x = texts()
    assert not torch.allclose(out(module, params, x), out(module, params, x.flip(1)))


def test_adapters_begin_as_the_frozen_model_and_train_only_what_is_sent() -> None:
    module, params = made(lora="2")
    assert {name.split(".")[-2] for name in params} == {"a", "b", "out"}
    zero = {name: t if name.startswith("out") else torch.zeros_like(t) for name, t in params.items()}
    x = texts()
    assert torch.equal(out(module, params, x), out(module, zero, x))
    leaves = {name: t.requires_grad_() for name, t in params.items()}
    out(module, leaves, x).square().sum().backward()
    for name, t in leaves.items():
        assert bool(t.grad.any()) != name.endswith(".a.weight")  # B = 0 hides A


def test_an_adapter_adds_the_product_of_its_factors() -> None:
    layer = made(lora="2")[0].blocks[0].attention.q
    draw = Rng(2).torch()
    a, b, z = (torch.randn(n, m, generator=draw) for n, m in ((2, 8), (8, 2), (3, 8)))
    with torch.no_grad():
        layer.a.weight.copy_(a)
        layer.b.weight.copy_(b)
    torch.testing.assert_close(layer(z), F.linear(z, layer.frozen.weight + b @ a, layer.frozen.bias))


def test_frozen_weights_are_constants_and_differ_between_layers() -> None:
    (one, _), (other, _) = made(lora="2"), made(lora="2")
    assert all(torch.equal(a, b) for a, b in zip(one.buffers(), other.buffers(), strict=True))
    weights = [name for name, _ in one.named_buffers() if name.endswith("frozen.weight")]
    assert len({one.get_buffer(name).sum().item() for name in weights}) == len(weights) == 8


@pytest.mark.parametrize(
    ("shape", "options", "told"),
    [
        ((1, 8, 8), {}, r"'model' is transformer, which takes texts \[length, words\]; inputs are 1x8x8"),
        (SHAPE, {"heads": "3"}, "option 'heads' is 3, allowed: a divisor of the width, 8"),
    ],
)
def test_what_does_not_fit_is_refused(shape: tuple[int, ...], options: dict[str, str], told: str) -> None:
    with pytest.raises(UserError, match=told):
        made(shape, **options)
