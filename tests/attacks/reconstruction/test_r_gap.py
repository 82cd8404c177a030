"""R-GAP: single samples come back exactly where every layer's equations determine its input, and else not at all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from helpers.digit_views import digits, make_view, score
from torch import Tensor, nn

from fedarena.attacks.reconstruction.cards.r_gap import Options
from fedarena.attacks.reconstruction.helpers.layer_chain import chain_of
from fedarena.attacks.reconstruction.helpers.plain_upload import PlainUpload
from fedarena.attacks.reconstruction.r_gap import RGap, residual, solve
from fedarena.contracts.inference import Guess
from fedarena.contracts.kept_entries import KeptEntries
from fedarena.contracts.view import View
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.core.threat import NotApplicable
from fedarena.models.cards.cnn import Options as CnnOptions
from fedarena.models.small_cnn import SmallCNN
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Task

CLASSES = 10


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def attack(view: View) -> Guess | NotApplicable:
    guess = RGap(Options())(view, Rng(0))
    assert isinstance(guess, NotApplicable | list)
    return guess  # type: ignore[return-value]


def upload(model: nn.Module, params: Tensors, x: Tensor, y: int, loss: str = "cross-entropy") -> PlainUpload:
    task = Task(model, input_shape=tuple(x.shape), n_classes=CLASSES, sizes=(1,), schedule=Schedule(loss=loss))
    gradient = torch.func.grad(task.loss)(params, x[None], torch.tensor([y]))
    return PlainUpload(task, params, gradient)


def solved(given: PlainUpload) -> tuple[Tensor, Tensor] | str:
    chain = chain_of(given.task.model, given.task.input_shape)
    assert not isinstance(chain, str), chain
    return solve(given, chain)


def drawn(model: nn.Module, seed: int, dtype: torch.dtype = torch.float64) -> Tensors:
    g = Rng(seed).torch()
    return {
        n: torch.randn(p.shape, generator=g, dtype=dtype) / p[0].numel() ** 0.5 for n, p in model.named_parameters()
    }


def small(*layers: nn.Module) -> nn.Sequential:
    return nn.Sequential(*layers)


def dense(activation: Callable[[], nn.Module], bias: bool) -> nn.Sequential:
    widths = (64, 40, 30, CLASSES)
    layers = [nn.Flatten(), nn.Linear(widths[0], widths[1], bias), activation()]
    return small(*layers, nn.Linear(widths[1], widths[2], bias), activation(), nn.Linear(widths[2], CLASSES, bias))


# -- what comes back ---------------------------------------------------------------------------------


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("activation", [lambda: nn.LeakyReLU(0.2), nn.Tanh, nn.Sigmoid, nn.ELU, nn.ReLU])
def test_a_dense_chain_is_solved_to_the_last_digits(activation: Callable[[], nn.Module], bias: bool) -> None:
    x, y = digits()
    model = dense(activation, bias)
    for i in range(3):
        given = upload(model, drawn(model, i), x[i].double(), int(y[i]))
        found = solved(given)
        assert not isinstance(found, str), found
        torch.testing.assert_close(found[0].reshape(x[i].shape), x[i].double(), rtol=0, atol=1e-8)
        torch.testing.assert_close(found[1], F.one_hot(y[i], CLASSES).double(), rtol=0, atol=1e-8)


def test_a_chain_of_convolutions_without_biases_is_solved() -> None:
    """The layers of the paper's CNN6 in small: LeakyReLU, strides, padding and no bias anywhere."""
    act = nn.LeakyReLU(0.2)
    convolutions = (nn.Conv2d(1, 6, 4, 2, 2, bias=False), act, nn.Conv2d(6, 8, 3, 2, 1, bias=False), act)
    model = small(*convolutions, nn.Conv2d(8, 8, 3, 1, 1, bias=False), act, nn.Flatten(), nn.Linear(72, CLASSES, False))
    x, y = digits()
    found = solved(upload(model, drawn(model, 0), x[0].double(), int(y[0])))
    assert not isinstance(found, str), found
    torch.testing.assert_close(found[0].reshape(x[0].shape), x[0].double(), rtol=0, atol=1e-7)


def test_relu_units_that_are_inactive_do_not_hinder() -> None:
    """In single precision, with the network of the suites, which normalises its inputs."""
    architecture = SmallCNN(CnnOptions())
    model = architecture.module((1, 8, 8), CLASSES)
    x, y = digits()
    found = solved(upload(model, architecture.init(model, Rng(0).torch()), x[0], int(y[0])))
    assert not isinstance(found, str), found
    torch.testing.assert_close(found[0].reshape(x[0].shape).float(), x[0], rtol=0, atol=1e-5)


def test_squared_errors_are_undone_as_well() -> None:
    x, y = digits()
    model = dense(nn.Tanh, bias=True)
    found = solved(upload(model, drawn(model, 0), x[0].double(), int(y[0]), loss="mse"))
    assert not isinstance(found, str), found
    torch.testing.assert_close(found[1], F.one_hot(y[0], CLASSES).double(), rtol=0, atol=1e-9)
    without = dense(nn.Tanh, bias=False)
    assert "has no bias" in str(solved(upload(without, drawn(without, 0), x[0].double(), int(y[0]), loss="mse")))


@pytest.mark.parametrize("steps", [0, 1])
def test_digits_come_back_from_dlgs_network_without_a_search(steps: int) -> None:
    """Of gradients, and of updates of one local step, which are a multiple of them."""
    schedule = Schedule(batch_size=1, local_epochs=steps, local_samples=1 if steps else None, lr=0.1)
    view, truths = make_view("fedavg", victims=3, schedule=schedule)
    guess = attack(view)
    assert not isinstance(guess, NotApplicable), guess.reason
    metrics = score(guess, truths)
    assert metrics["recovered"] == metrics["label_accuracy"] == 1
    assert metrics["psnr"] > (60 if steps else 95)  # an update is a difference of two models in single precision
    assert all(one.match < 1e-6 and one.blind == 0 for one in guess)


# -- what does not -----------------------------------------------------------------------------------


def test_the_rank_analysis_says_which_layer_leaves_directions_open() -> None:
    """Eight inputs at 49 positions each, and equations of two channels alone."""
    model = small(
        nn.Conv2d(1, 8, 3, 1, 0), nn.ReLU(), nn.Conv2d(8, 2, 2, 2), nn.ReLU(), nn.Flatten(), nn.Linear(18, 10)
    )
    x, y = digits()
    found = solved(upload(model, drawn(model, 0), x[0].double(), int(y[0])))
    assert isinstance(found, str)
    assert found.startswith("layer 2 has ")
    assert "for 288 inputs" in found


@pytest.mark.parametrize(
    ("cell", "schedule", "reason"),
    [
        ("fedavg", Schedule(batch_size=2), "2 samples are behind"),
        ("fedavg", Schedule(batch_size=1, local_epochs=3, local_samples=1, lr=0.3), "not the plain gradient"),
        ("dbcl", Schedule(), "not the plain gradient"),
    ],
)
def test_what_it_cannot_read_it_says(cell: str, schedule: Schedule, reason: str) -> None:
    view, _ = make_view(cell, victims=1, batch=schedule.batch_size, schedule=schedule)
    guess = attack(view)
    assert isinstance(guess, NotApplicable)
    assert reason in guess.reason


def test_an_observation_without_some_gradients_is_not_read() -> None:
    view, _ = make_view("dbcl/paper", victims=1)
    (seen,) = view.observations
    less = replace(seen, target={n: t for n, t in seen.target.items() if not n.startswith("conv1")})
    guess = attack(replace(view, observations=(less,)))
    assert isinstance(guess, NotApplicable)
    assert "some parameters was not seen" in guess.reason
    gaps = replace(seen, simulate=KeptEntries(seen.simulate, {n: torch.ones_like(t) for n, t in seen.target.items()}))
    guess = attack(replace(view, observations=(gaps,)))
    assert isinstance(guess, NotApplicable)
    assert "leaves entries" in guess.reason


# -- the output layer without a bias -----------------------------------------------------------------


@pytest.mark.parametrize("size", [0.1, 1.0, 5.0])
def test_the_residual_is_found_without_a_bias(size: float) -> None:
    g = Rng(1).torch()
    for _ in range(5):
        weight, h = torch.randn(CLASSES, 20, generator=g).double(), size * torch.rand(20, generator=g).double()
        delta = (weight @ h).softmax(0) - F.one_hot(torch.tensor(3), CLASSES)
        torch.testing.assert_close(residual(weight, torch.outer(delta, h)), delta, rtol=1e-6, atol=1e-12)


def test_options_do_not_allow_a_round_beyond_the_schedule() -> None:
    with pytest.raises(UserError, match="option 'start' is 9"):
        RGap(Options(start=9)).watch(Schedule(rounds=9))
