"""Models of third parties: layers that draw at random or keep a state are refused, constants are reproducible."""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fedarena.core.errors import UserError
from fedarena.core.registry import find
from fedarena.models.architecture import Architecture, UnusableLayer, blank, zeroed
from fedarena.models.mlp import MLP
from fedarena.models.module_check import require_pure
from fedarena.problem.problem import Problem, build
from fedarena.problem.spec import ProblemSpec


class FunctionalDropout(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return F.dropout(x, 0.5, self.training)


class PythonNoise(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * random.random()


class NumpyNoise(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * float(np.random.rand())


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        self.seen += len(x)
        return x


class RandomConstant(nn.Module):
    """Multiplies by weights that are drawn when it is made."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weights", torch.rand(8, device="cpu") + float(np.random.rand()) + random.random())

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weights[:, None, None]


def built(monkeypatch: pytest.MonkeyPatch, middle: Callable[[], nn.Module], lazily: bool = True) -> Problem:
    """The problem of a convolution, the layer in the middle, and a dense layer."""

    def module(self: Architecture, input_shape: tuple[int, ...], n_classes: int) -> nn.Module:
        def make() -> nn.Module:
            layers = {"conv": nn.Conv2d(1, 8, 3, padding=1), "middle": middle(), "flat": nn.Flatten()}
            return nn.Sequential(OrderedDict(**layers, out=nn.Linear(512, n_classes)))

        return blank(make) if lazily else make()

    monkeypatch.setattr(MLP, "module", module)
    options = find("model", "mlp").parse({})
    return build(ProblemSpec("digits", model="mlp", partition="iid", clients=2, model_options=options), 0)


@pytest.mark.parametrize(
    "middle",
    [nn.Dropout, nn.Dropout2d, nn.AlphaDropout, nn.RReLU, FunctionalDropout, PythonNoise, NumpyNoise],
)
def test_layers_that_draw_are_refused(middle: Callable[[], nn.Module], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError) as told:
        built(monkeypatch, middle)
    start = f"option 'model' is mlp, whose layer 'middle' ({middle.__name__}) draws from a global generator, allowed: "
    assert str(told.value).startswith(start)
    assert "\n" not in str(told.value)


def test_the_check_gives_the_global_generators_back() -> None:
    states = torch.get_rng_state().tolist(), random.getstate(), repr(np.random.get_state())
    for draw in (nn.Dropout, PythonNoise, NumpyNoise):
        with pytest.raises(UnusableLayer):
            require_pure(nn.Sequential(draw()), (1, 8, 8))
    assert states == (torch.get_rng_state().tolist(), random.getstate(), repr(np.random.get_state()))


def test_a_module_for_several_gpus_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    said = r"layer 'middle' \(DataParallel\) spreads batches over GPUs, allowed: the module inside \(\.module\)$"
    with pytest.raises(UserError, match=said):
        built(monkeypatch, lambda: nn.DataParallel(nn.ReLU()), lazily=False)


def test_dropout_that_drops_nothing_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert built(monkeypatch, lambda: nn.Dropout(0.0)).init


@pytest.mark.parametrize(
    ("middle", "layer", "buffer"),
    [
        (lambda: nn.BatchNorm2d(8, affine=False), "BatchNorm2d", "running_mean"),
        (lambda: nn.BatchNorm2d(8), "BatchNorm2d", "running_mean"),
        (lambda: nn.InstanceNorm2d(8, track_running_stats=True), "InstanceNorm2d", "running_mean"),
        (Counter, "Counter", "seen"),
    ],
)
def test_layers_with_a_state_are_refused(
    middle: Callable[[], nn.Module], layer: str, buffer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError) as told:
        built(monkeypatch, middle, lazily=False)
    start = f"option 'model' is mlp, whose layer 'middle' ({layer}) changes its {buffer} with every batch, allowed: "
    assert str(told.value).startswith(start)
    assert str(told.value).endswith("no running statistics and no parameters (affine=False, track_running_stats=False)")


def test_running_statistics_on_the_meta_device_are_refused_too(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match=r"layer 'middle' \(BatchNorm2d\) changes its .* with every batch"):
        built(monkeypatch, lambda: nn.BatchNorm2d(8))


@pytest.mark.parametrize(
    "middle",
    [
        lambda: nn.BatchNorm2d(8, track_running_stats=False),
        lambda: nn.GroupNorm(2, 8),
        lambda: nn.LayerNorm([8, 8, 8]),
    ],
)
def test_norms_with_parameters_are_refused(middle: Callable[[], nn.Module], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError) as told:
        built(monkeypatch, middle)
    start = f"option 'model' is mlp, whose layer 'middle' ({type(middle()).__name__}) has parameters without a distribu"
    assert str(told.value).startswith(start)
    assert str(told.value).endswith("no running statistics and no parameters (affine=False, track_running_stats=False)")


@pytest.mark.parametrize(
    "middle",
    [
        lambda: nn.BatchNorm2d(8, affine=False, track_running_stats=False),
        lambda: nn.GroupNorm(2, 8, affine=False),
        lambda: nn.LayerNorm([8, 8, 8], elementwise_affine=False),
    ],
)
def test_norms_without_parameters_are_accepted(
    middle: Callable[[], nn.Module], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sorted(built(monkeypatch, middle).init) == ["conv.bias", "conv.weight", "out.bias", "out.weight"]


@pytest.mark.parametrize("lazily", [False, True])
def test_a_buffer_keeps_the_values_of_its_constructor(lazily: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the meta device, where PyTorch's layers draw nothing, a buffer has no values."""

    class Constant(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("weights", torch.arange(8.0))

        def forward(self, x: Tensor) -> Tensor:
            return x * self.weights[:, None, None]

    model = built(monkeypatch, Constant, lazily=lazily).task.model
    assert torch.equal(model.get_buffer("middle.weights"), torch.arange(8.0))
    assert not any(p.any() for p in model.parameters()) or not lazily


class Average(nn.Module):
    """Keeps a tensor that it has not declared."""

    def __init__(self) -> None:
        super().__init__()
        self.mean = torch.zeros(())

    def forward(self, x: Tensor) -> Tensor:
        self.mean = 0.9 * self.mean + 0.1 * x.mean()
        return x - self.mean


def test_a_tensor_that_changes_is_a_state_though_it_is_no_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match=r"layer 'middle' \(Average\) changes its mean with every batch, allowed: "):
        built(monkeypatch, Average, lazily=False)


class Two(nn.Module):
    """Two layers, the second of which the forward step finds in some way."""

    def __init__(self) -> None:
        super().__init__()
        self.flat, self.one, self.other = nn.Flatten(), nn.Linear(512, 512), nn.Linear(512, 512)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(torch.tanh(self.one(self.flat(x))))

    def second(self, x: Tensor) -> Tensor:
        return self.other(x)


class ByClosure(Two):
    def __init__(self) -> None:
        super().__init__()
        self.second = lambda x: self.other(x)  # type: ignore[method-assign]


class AlsoByClosure(Two):
    """One layer that is found in two ways."""

    def __init__(self) -> None:
        super().__init__()
        self.also = lambda x: self.other(x)

    def second(self, x: Tensor) -> Tensor:
        made: Tensor = self.other(x) + self.also(x)
        return made


class Spare(Two):
    """A layer without a part in the outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.spare = nn.Linear(3, 3)


class ByParameters(Two):
    def __init__(self) -> None:
        super().__init__()
        self.held = [self.other.weight, self.other.bias]

    def second(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x, *self.held)


class ByList(Two):
    def __init__(self) -> None:
        super().__init__()
        self.held = [self.other]

    def second(self, x: Tensor) -> Tensor:
        made: Tensor = self.held[0](x)
        return made


@pytest.mark.parametrize("middle", [ByClosure, AlsoByClosure, ByParameters])
def test_parameters_that_a_copy_takes_from_elsewhere_are_refused(
    middle: Callable[[], nn.Module], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The harness passes parameters to copies of a module. Such a module would not be trained."""
    with pytest.raises(UserError, match=r"uses a parameter \[512(, 512)?\] that a copy of the module does not have"):
        built(monkeypatch, middle, lazily=False)


@pytest.mark.parametrize("middle", [Two, ByList, Spare])
def test_parameters_that_a_copy_takes_along_are_accepted(
    middle: Callable[[], nn.Module], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert built(monkeypatch, middle, lazily=False).init


def test_a_buffer_that_shares_memory_with_a_parameter_keeps_its_values() -> None:
    class Anchored(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)
            self.register_buffer("anchor", self.layer.weight.detach())

    made = zeroed(Anchored)
    assert made.get_buffer("anchor").any()
    assert not made.get_parameter("layer.weight").any()


def test_constants_that_a_constructor_draws_follow_from_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (built(monkeypatch, RandomConstant, lazily=False).task.model for _ in range(2))
    assert torch.equal(first.get_buffer("middle.weights"), second.get_buffer("middle.weights"))
