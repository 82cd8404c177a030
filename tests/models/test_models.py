"""Models: the papers' sizes, the laws of initial parameters, and where the randomness comes from."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from fedarena.core.errors import UserError
from fedarena.core.options import check_options
from fedarena.core.registry import find
from fedarena.core.rng import Rng
from fedarena.models import CARDS
from fedarena.models.architecture import UnusableLayer
from fedarena.models.mlp import MLP
from fedarena.problem.problem import build
from fedarena.problem.spec import ProblemSpec

MNIST, CIFAR = (1, 28, 28), (3, 32, 32)

NEEDED = {"mobilenet-head": {"weights": "random", "size": "32"}}
"""Options without which a model does not take every image, or needs a file."""


def make(name, **text):
    card = find("model", name)
    return card.load()(card.parse(NEEDED.get(name, {}) | text))


def count(module):
    return sum(p.numel() for p in module.parameters())


@pytest.mark.parametrize(
    ("name", "shape", "parameters"),
    [
        ("mlp", MNIST, 199_210),
        ("mlp-two-stage", MNIST, 25_450),
        ("cnn-mnist", MNIST, 582_026),
        ("cnn-two-stage", MNIST, 21_802),
        # 12·(25·c + 1) + 2·12·(25·12 + 1), then 588 or 768 features into 10 classes
        ("lenet-dlg", MNIST, 312 + 7224 + 5890),
        ("lenet-dlg", CIFAR, 912 + 7224 + 7690),
        # 5x5 convolutions 3-32-64-128, then 2048-200-10
        ("cnn-cifar10", CIFAR, 2432 + 51_264 + 204_928 + 409_800 + 2010),
    ],
)
def test_parameter_counts_of_the_papers(name, shape, parameters):
    assert count(make(name).module(shape, 10)) == parameters


def drawn(law, layer):
    return (
        find("model", "mlp")
        .load()(find("model", "mlp").parse({"init": law}))
        .init(nn.Sequential(layer), Rng(1).torch())
    )


@pytest.mark.parametrize("law", ["default", "uniform-half"])
@pytest.mark.parametrize("layer", [nn.Linear(300, 400), nn.Conv2d(12, 400, 5)])
def test_uniform_laws_fill_their_range(law, layer):
    params = drawn(law, layer)
    bound = 0.5 if law == "uniform-half" else 1 / math.sqrt(300)
    for p in params.values():
        assert p.abs().max() <= bound
        assert p.max() > 0.95 * bound
        assert p.min() < -0.95 * bound
    w = params["0.weight"]
    assert w.var().item() == pytest.approx(bound**2 / 3, rel=0.02)
    assert abs(w.mean().item()) < 0.01 * bound


@pytest.mark.parametrize(("layer", "variance"), [(nn.Linear(300, 500), 2 / 800), (nn.Conv2d(20, 64, 5), 2 / (25 * 64))])
def test_xavier_he_has_its_variance_and_zero_biases(layer, variance):
    params = drawn("xavier-he", layer)
    assert params["0.weight"].var().item() == pytest.approx(variance, rel=0.03)
    assert params["0.weight"].abs().max() > 3 * math.sqrt(variance)  # normal, not uniform
    assert not params["0.bias"].any()


@pytest.mark.parametrize("name", ["mlp-two-stage", "cnn-two-stage"])
def test_weights_of_a_seed_are_those_of_the_two_stage_paper_s_code(name):
    """torch.manual_seed(1234), then layer by layer Xavier's normal law, or N(0, 2/(k² c_out)) of a convolution."""
    model = make(name, weights_seed="1234")
    module = model.module(MNIST, 10)
    found = [model.init(module, Rng(run).torch()) for run in (0, 1)]
    state = torch.random.get_rng_state()
    torch.manual_seed(1234)
    for layer_name, layer in module.named_modules():
        if isinstance(layer, nn.Conv2d):
            wanted = torch.empty_like(layer.weight).normal_(0, math.sqrt(2 / (5 * 5 * layer.out_channels)))
        elif isinstance(layer, nn.Linear):
            wanted = nn.init.xavier_normal_(torch.empty_like(layer.weight))
        else:
            continue
        for params in found:
            torch.testing.assert_close(params[f"{layer_name}.weight"], wanted.detach())
            assert not params[f"{layer_name}.bias"].any()
    torch.random.set_rng_state(state)


def test_a_layer_without_a_distribution_is_refused():
    with pytest.raises(UnusableLayer, match=r"^layer '0' \(GroupNorm\) has parameters .* a norm must have no running"):
        drawn("default", nn.GroupNorm(1, 4))


def test_mlp_options():
    module = make("mlp", widths="7, 5,3", activation="tanh").module((2, 3), 4)
    assert [tuple(p.shape) for p in module.parameters() if p.dim() == 2] == [(7, 6), (5, 7), (3, 5), (4, 3)]
    assert [type(m) for m in module] == [nn.Flatten] + 3 * [nn.Linear, nn.Tanh] + [nn.Linear]
    with pytest.raises(UserError, match="widths"):
        make("mlp", widths="7,0")
    with pytest.raises(UserError, match="activation"):
        make("mlp", activation="swish")


@pytest.mark.parametrize(("name", "smallest"), [("cnn-mnist", 16), ("cnn-cifar10", 20), ("cnn-two-stage", 16)])
def test_too_small_images_are_refused_with_the_smallest_size(name, smallest):
    model = make(name)
    assert count(model.module((1, smallest, smallest), 10)) > 0
    with pytest.raises(UserError, match=rf"{name}.*{smallest}x{smallest}.*1x{smallest}x{smallest - 1}"):
        model.module((1, smallest, smallest - 1), 10)
    with pytest.raises(UserError, match=rf"{name}.*64"):
        model.module((64,), 10)


@pytest.mark.parametrize("name", sorted(CARDS))
def test_defaults_lie_in_their_own_range(name):
    card = find("model", name)
    check_options(card.options(), name)


@pytest.mark.parametrize("width", [10**12, 2**53 - 1])  # beyond the bytes there are, and the countable ones
def test_a_model_that_does_not_fit_in_memory_is_told_by_its_options(width):
    spec = ProblemSpec(
        "digits",
        model="mlp",
        partition="iid",
        clients=2,
        model_options=find("model", "mlp").parse({"widths": str(width)}),
    )
    with pytest.raises(UserError) as told:
        build(spec, 0)
    assert str(told.value) == (
        f"option 'model' is mlp with widths={width}, which does not fit in memory: use a smaller model"
    )


@pytest.mark.parametrize(
    "error", [MemoryError(), torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.")]
)
def test_memory_that_runs_out_on_the_way_is_told_alike(error, monkeypatch):
    def init(*args):
        raise error

    monkeypatch.setattr(MLP, "init", init)
    with pytest.raises(UserError, match="option 'model' is mlp, which does not fit in memory: use a smaller model"):
        build(
            ProblemSpec(
                "digits", model="mlp", partition="iid", clients=2, model_options=find("model", "mlp").parse({})
            ),
            0,
        )


@pytest.mark.parametrize("error", [RuntimeError("shapes cannot be multiplied"), TypeError("a bug")])
def test_a_model_s_other_errors_stay_what_they_are(error, monkeypatch):
    def init(*args):
        raise error

    monkeypatch.setattr(MLP, "init", init)
    with pytest.raises(type(error), match=str(error)):
        build(
            ProblemSpec(
                "digits", model="mlp", partition="iid", clients=2, model_options=find("model", "mlp").parse({})
            ),
            0,
        )
