"""Attacks on gradients that plain PyTorch computed: what comes back, and what does not fit."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from helpers.plain_gradients import dense, digits, gradient_of
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from fedarena.api import invert
from fedarena.core.errors import UserError


class Attention(nn.Module):
    """Rows of the image are words of a small transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(8, 16)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True, activation="gelu")
        self.out = nn.Linear(128, 10)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.out(self.layer(self.embed(x[:, 0])).flatten(1))
        return out


class Deciding(nn.Module):
    """It looks at its inputs before it decides what to do with them."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.out(x.flatten(1) if x.sum() > 0 else -x.flatten(1))
        return out


def convolutional() -> nn.Module:
    parts = (nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.Sigmoid(), nn.Flatten(), nn.Linear(512, 10))
    model = nn.Sequential(*parts)
    with torch.no_grad():
        model(torch.rand(64, 1, 8, 8))  # its running statistics are not those of a new one
    return model.eval()


def error(guess: Tensor, x: Tensor) -> float:
    return float((guess - x).square().mean())


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize(
    ("make", "attack", "options", "largest"),
    [
        (convolutional, "dlg", {"iterations": 200}, 1e-4),
        (convolutional, "inverting-gradients", {"iterations": 400}, 5e-3),
        (Attention, "dlg", {"iterations": 300}, 5e-3),
        (dense, "analytic", {}, 1e-6),
    ],
)
def test_an_image_comes_back(make: Any, attack: str, options: dict[str, int], largest: float) -> None:
    model, (x, y) = make().eval(), digits(1)
    guess = invert(model, gradient_of(model, x, y), input_shape=(1, 8, 8), n_classes=10, attack=attack, **options)
    assert error(guess.images, x) < largest
    assert guess.labels.tolist() == y.tolist()
    assert guess.images.shape == x.shape


@pytest.mark.parametrize(
    ("attack", "options", "most"),
    [
        ("dlg", {"iterations": 20, "tolerance": 0, "tv": 1e-3, "decades": 2}, 63),
        ("idlg", {"iterations": 20, "tolerance": 0, "optimizer": "adam"}, 21),
        ("inverting-gradients", {"iterations": 20, "polish": 10}, 31),
        ("inverting-gradients", {"iterations": 20, "kinks": 0.1}, 21),
    ],
)
def test_progress_is_told_at_every_evaluation(attack: str, options: dict[str, Any], most: int) -> None:
    heard: list[tuple[float, str]] = []
    model, (x, y) = dense(), digits(1)
    invert(
        model,
        gradient_of(model, x, y),
        input_shape=(1, 8, 8),
        n_classes=10,
        attack=attack,
        progress=lambda *told: heard.append(told),
        **options,
    )
    shares = [share for share, _ in heard]
    assert shares == sorted(set(shares))
    assert shares[-1] == 1
    assert most - 3 <= len(heard) - 1 <= most
    assert heard[1][1] == f"round 0: 1 of at most {most} evaluations"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_what_progress_raises_ends_the_search(error: type[BaseException]) -> None:
    heard = []

    def broken(share: float, text: str) -> None:
        heard.append(share)
        if len(heard) == 5:
            raise error("mine")

    model, (x, y) = dense(), digits(1)
    with pytest.raises(error, match=r"^mine$"):
        invert(model, gradient_of(model, x, y), input_shape=(1, 8, 8), n_classes=10, attack="dlg", progress=broken)
    assert len(heard) == 5


def test_the_attack_is_inverting_gradients_unless_another_is_named() -> None:
    model, (x, y) = dense(), digits(1)
    given: dict[str, Any] = {"gradients": gradient_of(model, x, y), "input_shape": (1, 8, 8), "n_classes": 10}
    given |= {"iterations": 20, "restarts": 1}
    guess, named = invert(model, **given), invert(model, **given, attack="inverting-gradients")
    assert torch.equal(guess.images, named.images)
    assert guess.match == named.match


def test_the_search_ends_at_the_distance_that_plain_pytorch_gives() -> None:
    model, (x, y) = convolutional(), digits(1)
    target = gradient_of(model, x, y)
    guess = invert(model, target, input_shape=(1, 8, 8), n_classes=10, attack="idlg", iterations=30)
    again = gradient_of(model, guess.images, guess.labels)
    away = sum(float((a - b).square().sum()) for a, b in zip(again, target, strict=True))
    assert guess.match == pytest.approx(away / sum(float(t.square().sum()) for t in target), rel=1e-3, abs=1e-9)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_it_works_where_the_caller_takes_no_gradients(mode: Any) -> None:
    model, (x, y) = dense(), digits(1)
    gradient = gradient_of(model, x, y)
    with mode():
        given = [g.clone() for g in gradient]
        guess = invert(model, given, input_shape=(1, 8, 8), n_classes=10, attack="dlg", iterations=20)
    same = invert(model, gradient, input_shape=(1, 8, 8), n_classes=10, attack="dlg", iterations=20)
    assert torch.equal(guess.images, same.images)


def test_a_mapping_in_another_order_is_the_same_gradient() -> None:
    model, (x, y) = dense(), digits(1)
    named = dict(zip(dict(model.named_parameters()), gradient_of(model, x, y), strict=True))
    one = invert(model, named, input_shape=(1, 8, 8), n_classes=10, attack="dlg", iterations=10)
    other = invert(
        model, dict(reversed(named.items())), input_shape=(1, 8, 8), n_classes=10, attack="dlg", iterations=10
    )
    assert torch.equal(one.images, other.images)


def test_an_update_of_two_local_steps_is_replayed() -> None:
    """Two epochs of one step each, by torch.optim; the same update read as one gradient is farther away."""
    model, (x, y) = dense(), digits(1)
    moved = dense()
    moved.load_state_dict(model.state_dict())
    optimiser = torch.optim.SGD(moved.parameters(), lr=0.5)
    for _ in range(2):
        optimiser.zero_grad()
        cross_entropy(moved(x), y).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    update = [a.detach() - b.detach() for a, b in zip(model.parameters(), moved.parameters(), strict=True)]
    fits: dict[str, Any] = {"input_shape": (1, 8, 8), "n_classes": 10, "attack": "dlg", "iterations": 200}
    right, wrong = invert(model, update, local_epochs=2, lr=0.5, **fits), invert(model, update, **fits)
    assert error(right.images, x) < 1e-3
    assert right.match < wrong.match


def test_given_labels_and_samples_are_used() -> None:
    model, (x, y) = dense(), digits(2)
    target = gradient_of(model, x, y)
    fits: dict[str, Any] = {"input_shape": (1, 8, 8), "n_classes": 10, "attack": "dlg", "images": 2, "iterations": 20}
    known = invert(model, target, labels=y, **fits, **{"dlg.labels": "given"})
    assert known.labels.tolist() == y.tolist()
    a, b = invert(model, target, **fits), invert(model, target, samples=digits(60), **fits)
    assert not torch.equal(a.images, b.images)


def test_a_model_need_not_pickle_and_keeps_its_numbers() -> None:
    class Local(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = dense()

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = self.inner(x)
            return out

    model, (x, y) = Local(), digits(1)
    before = {name: t.clone() for name, t in model.state_dict().items()}
    guess = invert(model, gradient_of(model, x, y), input_shape=(1, 8, 8), n_classes=10, attack="analytic")
    assert error(guess.images, x) < 1e-6
    assert all(torch.equal(t, before[name]) for name, t in model.state_dict().items())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"attack": "lira"}, "unknown attack"),
        ({"attack": "sign-flip"}, "guesses no images"),
        ({"attack": "joint-membership"}, "guesses no images"),
        (
            {"attack": "imprint"},
            "attack is 'imprint', for which a server chooses what it sends, allowed: one on a given",
        ),
        ({"attack": "dlg", "iteration": 3}, "did you mean iterations"),
        ({"attack": "dlg", "dlg.labels": "given"}, "pass labels"),
        ({"labels": [1]}, "makes no use of labels"),
        ({"lr": 0.1}, "allowed: with local_epochs"),
        ({"local_epochs": 2}, "which needs lr"),
        ({"labels": [1, 2]}, r"labels have the shape \[2\], allowed: \[1\]"),
        ({"input_shape": (1, 9, 9)}, r"fails on inputs \[2, 1, 9, 9\]: RuntimeError"),
        ({"n_classes": 4}, r"a tensor \[2, 10\] .*, allowed: a tensor \[2, 4\]"),
        ({"gradients": []}, "gradients are 0 tensors, allowed: 4"),
        ({"gradients": {"a": torch.zeros(1)}}, "differ in 1.bias"),
        ({"gradients": None}, "gradients are None, allowed: a list"),
        ({"gradients": {1: None}}, "differ in 1"),
        ({"gradients": [None] * 4}, "gradients are None for all parameters"),
        ({"gradients": [torch.ones(32, 64) + 1j] * 4}, "complex numbers, allowed: real ones"),
        ({"images": 0}, "images is 0, allowed: an integer, 1 or more"),
        ({"images": 1.5}, "images is 1.5"),
        ({"local_epochs": -1}, "local_epochs is -1, allowed: an integer, 0 or more"),
        ({"local_epochs": 1, "lr": 0}, "lr is 0, allowed: a finite number above 0"),
        ({"local_epochs": 1, "lr": torch.nan}, "lr is nan"),
        ({"local_epochs": 1, "lr": "x"}, "lr is 'x'"),
        ({"local_epochs": 1, "lr": 0.1, "images": 3, "batch_size": 2}, "a divisor of the 3 images"),
        ({"labels": [10]}, "labels: classes from 10 to 10, allowed: 0 to 9"),
        ({"labels": [0.5]}, "labels: float32 values, allowed: whole numbers"),
        ({"labels": ["a"]}, "labels: no numbers"),
        ({"input_shape": 64}, "input_shape is an int"),
        ({"input_shape": (1, -8, 8)}, "a size of input_shape is -8"),
        ({"n_classes": "10"}, "n_classes is '10'"),
        ({"loss": "l1"}, "loss is 'l1', allowed: cross-entropy, mse, regression"),
        ({"seed": -1}, "seed is -1, allowed: an integer from 0 to"),
        ({"attack": 3}, "option 'attack' is an int, allowed: a name"),
        ({"samples": 3}, "samples is an int, allowed:"),
        ({"samples": (torch.zeros(4, 1, 8, 8, dtype=torch.uint8), torch.zeros(4))}, "inputs of samples: uint8 values,"),
        ({"samples": (torch.full((4, 1, 8, 8), 255.0), torch.zeros(4))}, "whole numbers up to 255, allowed: floats in"),
        (
            {"model": nn.DataParallel(dense())},
            r"model: its forward .* over GPUs, allowed: the module inside \(.module\)$",
        ),
        ({"model": Deciding()}, "model: its forward pass decides by the values that it computes, allowed: the same"),
        ({"samples": (torch.zeros(4, 3), torch.zeros(4))}, r"shapes \[4, 3\] and \[4\], allowed: \[k, 1, 8, 8\]"),
        ({"gradients": [torch.zeros(1)] * 4}, "has shape"),
        ({"gradients": [torch.full(s, torch.nan) for s in ((32, 64), (32,), (10, 32), (10,))]}, "not finite"),
    ],
)
def test_bad_input_is_told_in_one_line(changes: dict[str, Any], said: str) -> None:
    model, (x, y) = changes.pop("model", dense()), digits(1)
    given: dict[str, Any] = {"gradients": gradient_of(model, x, y), "input_shape": (1, 8, 8), "n_classes": 10}
    given |= {"attack": "dlg"} | changes
    with pytest.raises(UserError, match=said):
        invert(model, **given)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_double_precision_as_the_session_s_own_changes_nothing() -> None:
    model, (x, y) = dense(), digits(1)
    given: dict[str, Any] = {"gradients": gradient_of(model, x, y), "input_shape": (1, 8, 8), "n_classes": 10}
    found = [invert(model, **given, attack="dlg", iterations=20)]
    torch.set_default_dtype(torch.float64)
    try:
        found.append(invert(model, **given, attack="dlg", iterations=20))
    finally:
        torch.set_default_dtype(torch.float32)
    assert torch.equal(found[0].images, found[1].images)


def test_dropout_that_drops_nothing_may_be_in_training_mode() -> None:
    model, (x, y) = nn.Sequential(*dense(), nn.Dropout(0.0)), digits(1)
    guess = invert(model, gradient_of(model, x, y), input_shape=(1, 8, 8), n_classes=10, attack="dlg", iterations=5)
    assert guess.images.shape == x.shape


class InParts(nn.Module):
    """Its first layer is given each row of an image."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.out = nn.Linear(8, 8), nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.out(self.first(x[:, 0]).relu().flatten(1))
        return out


@pytest.mark.parametrize("attack", ["analytic", "spear"])
def test_a_layer_that_is_given_parts_of_a_sample_is_told_as_such(attack: str) -> None:
    model, (x, y) = InParts(), digits(1)
    with pytest.raises(UserError, match=f"attack {attack}: the first layer is given several parts of a sample"):
        invert(model, gradient_of(model, x, y), input_shape=(1, 8, 8), n_classes=10, attack=attack)


def test_a_model_without_python_or_numbers_is_told_in_one_line() -> None:
    model, (x, y) = dense(), digits(1)
    given: dict[str, Any] = {"gradients": gradient_of(model, x, y), "input_shape": (1, 8, 8), "n_classes": 10}
    with pytest.raises(UserError, match=r"Module, allowed: the nn.Module of Python that it was made of$"):
        invert(torch.jit.trace(model, x), **given, attack="dlg")
    with pytest.raises(
        UserError, match=r"^parameter 1.weight of the model: a meta tensor \[32, 64\], allowed: a dense"
    ):
        invert(model.to("meta"), **given, attack="dlg")


def test_arrays_and_lists_are_gradients_too() -> None:
    model, (x, y) = dense(), digits(1)
    gradient, names = gradient_of(model, x, y), [name for name, _ in model.named_parameters()]
    same: dict[str, Any] = {"input_shape": (1, 8, 8), "n_classes": 10, "attack": "dlg", "iterations": 3}
    wanted = invert(model, gradient, **same).images
    for one in (tuple(g.numpy() for g in gradient), {n: g.tolist() for n, g in zip(names, gradient, strict=True)}):
        assert torch.equal(invert(model, one, **same).images, wanted)


def test_a_layer_is_a_model_whose_gradient_has_the_layer_s_names() -> None:
    model, (x, y) = nn.Linear(64, 10), digits(1)
    weight, bias = gradient_of(model, x.flatten(1), y)
    same: dict[str, Any] = {"input_shape": (64,), "n_classes": 10, "attack": "idlg", "iterations": 3}
    named = invert(model, {"bias": bias, "weight": weight}, **same)
    around = invert(nn.Sequential(model), [weight, bias], **same)
    assert torch.equal(named.images, around.images)
    assert named.labels.tolist() == y.tolist()


def test_a_layer_that_does_not_fit_is_called_a_layer() -> None:
    wrong: dict[str, Any] = {"input_shape": (63,), "n_classes": 10, "attack": "dlg"}
    with pytest.raises(UserError, match=r"^model: its forward step \(Linear\) fails on inputs \[2, 63\]"):
        invert(nn.Linear(64, 10), [torch.zeros(10, 64), torch.zeros(10)], **wrong)


def test_a_model_that_is_another_one_when_copied_is_refused() -> None:
    """The search would be in a network with other parameters than the user's."""
    model = dense()
    model.forward = lambda x: nn.Sequential.forward(model, x)  # type: ignore[method-assign]
    said = r"^model: its forward step \(Sequential\) uses a parameter \[.*\] that a copy of the module does not have, "
    with pytest.raises(UserError, match=said):
        invert(model, gradient_of(model, *digits(1)), input_shape=(1, 8, 8), n_classes=10, attack="dlg")


def test_a_parameter_that_is_not_used_has_no_gradient() -> None:
    class WithToken(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.token, self.dense = nn.Parameter(torch.ones(3)), dense()

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = self.dense(x)
            return out

    model, (x, y) = WithToken(), digits(1)
    gradient = torch.autograd.grad(cross_entropy(model(x), y), list(model.parameters()), allow_unused=True)
    assert gradient[0] is None
    guess = invert(model, gradient, input_shape=(1, 8, 8), n_classes=10, attack="dlg", iterations=300)
    assert error(guess.images, x) < 1e-3


def test_numbers_in_double_and_dropped_units_say_what_to_do() -> None:
    given: dict[str, Any] = {"input_shape": (1, 8, 8), "n_classes": 10, "attack": "dlg"}
    with pytest.raises(UserError, match=r"is of float64, allowed: float32 \(model.float"):
        invert(dense().double(), [], **given)
    with pytest.raises(UserError, match=r"drops units, allowed: evaluation mode \(model.eval"):
        invert(nn.Sequential(nn.Flatten(), nn.Dropout(0.1), nn.Linear(64, 10)), [], **given)
    with pytest.raises(UserError, match="a gradient for each parameter, None for one"):
        invert(dense(), {"nothing": torch.zeros(1)}, **given)


def test_what_cannot_be_read_says_why() -> None:
    model, (x, y) = convolutional(), digits(1)
    with pytest.raises(UserError, match="the first layer is convolutional"):
        invert(model, gradient_of(model, x, y), input_shape=(1, 8, 8), n_classes=10, attack="analytic")
    with pytest.raises(UserError, match=r"evaluation mode \(model.eval"):
        invert(model.train(), [], input_shape=(1, 8, 8), n_classes=10, attack="dlg")
