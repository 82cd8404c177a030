"""Positive scalings of the models at hand: they keep their function, or the layer in the way is named."""

from __future__ import annotations

import re

import pytest
from helpers.scaling import apart, drawn, outputs, times

from fedarena.core.errors import UserError
from fedarena.core.registry import find
from fedarena.core.rng import Rng
from fedarena.models import CARDS
from fedarena.models.scaling.positive_scaling import plan


def shipped(name, options):
    card, shape = find("model", name), (7, 20) if name == "transformer" else (3, 32, 32)
    architecture = card.load()(card.parse(options))
    module = architecture.module(shape, 10)
    return module, architecture.init(module, Rng(0).torch()), shape


@pytest.mark.parametrize("name", sorted(CARDS))
def test_shipped_models_plan_or_say_which_layer_is_in_the_way(name):
    module, _, shape = shipped(name, {"weights": "random", "size": "32"} if name == "mobilenet-head" else {})
    try:
        found = plan(module, shape)
    except UserError as error:
        said = re.match(r"layer '(.*)' \((.*)\) (does not keep the masks|gets samples of . axes)", str(error))
        said = re.match(r"layer '(.*)' \((.*)\) (does not keep the masks|gets samples of 2 axes)", str(error))
        assert said
        assert type(module.get_submodule(said[1])).__name__ == said[2]
    else:
        assert {name for layer in found.layers for name in (f"{layer.name}.weight", f"{layer.name}.bias")} >= {
            name for name, _ in module.named_parameters()
        }


@pytest.mark.parametrize(
    ("name", "options", "groups"),
    [
        ("cnn-bucketing", {}, (32, 64, 128)),
        ("cnn-cifar10", {}, (32, 64, 128, 200)),
        ("cnn-mnist", {}, (32, 64, 512)),
        ("lenet-baffle", {"activation": "relu", "norm": "none", "mean": "0.5"}, (16, 64)),
        ("mlp", {}, (200, 200)),
        ("mlp-two-stage", {"activation": "relu", "blur": "1", "size": "8"}, (32,)),
        ("resnet", {"skip": "add", "depth": "20"}, (16,) * 4 + (32,) * 4 + (64,) * 4),
        ("wrn-10-2", {"activation": "relu", "norm": "none"}, (16, 32, 32, 64, 64, 128, 128)),
    ],
)
def test_shipped_models_keep_their_function(name, options, groups):
    module, params, shape = shipped(name, options)
    found, params = plan(module, shape), {n: p.double() for n, p in params.items()}
    assert found.sizes == groups
    masked = times(found.factors(drawn(found.sizes)), params)
    plain, hat = (outputs(module.double(), p, shape) for p in (params, masked))
    assert apart({"out": hat}, {"out": plain}) < 1e-10


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("cnn-two-stage", {"activation": "relu"}, r"layer 'norm1' \(GroupNorm\)"),
        ("lenet-baffle", {"activation": "hardswish", "norm": "none"}, r"layer 'act1' \(Hardswish\)"),
        ("lenet-baffle", {"activation": "relu", "norm": "batch"}, r"layer 'norm1' \(BatchNorm2d\)"),
        ("lenet-dlg", {}, r"layer 'act1' \(Sigmoid\)"),
        ("mlp", {"activation": "tanh"}, r"layer 'act1' \(Tanh\)"),
        ("mlp-two-stage", {"activation": "elu"}, r"layer 'act1' \(ELU\)"),
        ("vit", {}, r"layer 'embed' \(Linear\) gets samples of 2 axes"),
        ("wrn-10-2", {"activation": "relu"}, r"layer 'block1\.before\.norm' \(GroupNorm\)"),
    ],
)
def test_options_that_do_not_keep_masks_are_named(name, options, message):
    module, _, shape = shipped(name, options)
    with pytest.raises(UserError, match=message):
        plan(module, shape)


def test_concatenating_blocks_have_groups_of_their_own():
    module, params, shape = shipped("resnet", {"skip": "concat", "depth": "20"})
    found = plan(module, shape)
    assert sum(found.sizes) == sum(len(params[f"{layer.name}.weight"]) for layer in found.layers[:-1])
    assert sum(run.channels for run in found.layers[-1].columns) == params["out.weight"].shape[1]
    assert len(found.layers[-1].columns) == 4  # the stage's shortcut and its three blocks
