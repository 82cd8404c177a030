"""MI-Face: its costs, how they are descended, what queries measure, and every option."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fedarena.attacks.inversion.cards.model_inversion import Options
from fedarena.attacks.inversion.model_inversion import InversionCost, ModelInversion, directions, in_clear, smooth
from fedarena.contracts.final_model import BlackBox, Predictor, WhiteBox
from fedarena.contracts.inference import Portraits
from fedarena.contracts.view import Population, View
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.core.threat import Threat
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Task

SHAPE, CLASSES = (1, 8, 8), 3
LOSS = InversionCost("loss", "cross-entropy")


def task(loss: str = "cross-entropy") -> Task:
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, CLASSES))
    return Task(model, input_shape=SHAPE, n_classes=CLASSES, sizes=(1, 1), schedule=Schedule(loss=loss))


def softmax(scale: float = 1.0) -> Tensors:
    """Softmax regression with templates of its own for every class."""
    return {
        "1.weight": scale * torch.randn(CLASSES, 64, generator=torch.Generator().manual_seed(0)),
        "1.bias": torch.tensor([0.0, 3.0, -3.0]),
    }


def view(model: Predictor, population: Population | None = None) -> View:
    threat = Threat("client", "paper")
    loss = model.task.schedule.loss
    return View(
        threat,
        reading="release",
        input_shape=SHAPE,
        n_classes=CLASSES,
        observations=(),
        loss=loss,
        population=population,
        model=model,
    )


def invert(options: Options, model: Predictor | None = None, population: Population | None = None) -> Portraits:
    made = ModelInversion(options)(view(model or WhiteBox(task(), softmax()), population), Rng(0))
    assert isinstance(made, Portraits)
    return made


# -- costs ---------------------------------------------------------------------------------------------


def test_the_costs_are_the_paper_s_and_the_training_losses() -> None:
    said, classes = torch.tensor([[0.2, 0.7, 0.1]], dtype=torch.float64), torch.tensor([1])
    assert float(InversionCost("confidence", "cross-entropy")(said, classes)) == pytest.approx(0.3)
    assert float(InversionCost("confidence", "mse")(said, classes)) == pytest.approx(0.3)
    assert float(LOSS(said, classes)) == pytest.approx(0.35667, abs=1e-5)
    assert float(InversionCost("loss", "mse")(said, classes)) == pytest.approx(0.5 * (0.04 + 0.09 + 0.01))


def test_a_class_is_found_where_its_confidence_is_reached() -> None:
    assert InversionCost("confidence", "mse").of(0.99) == pytest.approx(0.01)
    assert LOSS.of(0.99) == pytest.approx(0.01005, abs=1e-5)
    assert InversionCost("loss", "mse").of(0.9) == pytest.approx(0.005)


@pytest.mark.parametrize("loss", ["cross-entropy", "mse"])
@pytest.mark.parametrize("kind", ["loss", "confidence"])
def test_gradients_in_clear_are_those_of_the_cost(kind: str, loss: str) -> None:
    model, x, classes = WhiteBox(task(loss), softmax()), torch.rand(2, *SHAPE), torch.tensor([2, 0])
    cost = InversionCost(kind, loss)
    values, gradients = in_clear(model, cost)(x, classes)
    assert torch.equal(values, cost(model.confidences(x), classes))
    step = torch.zeros_like(x)
    step[:, 0, 3, 4] = 1e-2
    ends = [cost(model.confidences(x + sign * step), classes) for sign in (1, -1)]
    assert torch.allclose(gradients[:, 0, 3, 4].double(), (ends[0] - ends[1]) / 2e-2, rtol=1e-2, atol=1e-4)


# -- descent -------------------------------------------------------------------------------------------


def test_every_class_is_brought_to_the_confidence_asked_for_within_the_box() -> None:
    model = WhiteBox(task(), softmax())
    made = invert(Options(confidence=0.95))
    said = model.confidences(made.images).diag()
    assert bool((said >= 0.95).all())
    assert bool((made.images >= 0).all())
    assert bool((made.images <= 1).all())
    assert made.queries == 0
    assert int(made.steps[1]) < int(made.steps[2])  # whom the bias prefers is found sooner, and then left alone
    shorter = invert(Options(confidence=0.95, iterations=int(made.steps[1])))
    assert torch.equal(made.images[1], shorter.images[1])


def test_steps_end_with_iterations_and_with_patience() -> None:
    assert invert(Options(iterations=3, confidence=1.0)).steps.tolist() == [3, 3, 3]
    flat = {name: torch.zeros_like(values) for name, values in softmax().items()}
    made = invert(Options(patience=7), WhiteBox(task(), flat))
    assert made.steps.tolist() == [7, 7, 7]
    assert torch.equal(made.images, torch.full((3, *SHAPE), 0.5))


def test_the_best_image_is_returned_and_not_the_last() -> None:
    """Steps that are far too long throw a model of squared errors from one corner of the box into another."""
    model, classes = WhiteBox(task("mse"), softmax()), torch.arange(CLASSES)
    cost = InversionCost("loss", "mse")
    reached = [cost(model.confidences(invert(Options(lr=5, iterations=n), model).images), classes) for n in (1, 2, 9)]
    assert bool((reached[1] <= reached[0]).all())
    assert bool((reached[2] <= reached[1]).all())


def test_a_gradient_that_is_not_finite_moves_nothing() -> None:
    broken = {name: torch.full_like(values, torch.nan) for name, values in softmax().items()}
    assert torch.equal(invert(Options(), WhiteBox(task(), broken)).images, torch.full((3, *SHAPE), 0.5))


def test_starts() -> None:
    own = Population(torch.rand(5, *SHAPE), torch.zeros(5, dtype=torch.int64))
    nowhere = WhiteBox(task(), {name: torch.zeros_like(values) for name, values in softmax().items()})
    for name, start in (("zeros", 0.0), ("grey", 0.5)):
        made = invert(Options(start=name), nowhere)
        assert torch.equal(made.images, torch.full((3, *SHAPE), start))
        assert not ModelInversion(Options(start=name)).needs_population
    assert ModelInversion(Options(start="mean")).needs_population
    assert torch.equal(invert(Options(start="mean"), nowhere, own).images, own.x.mean(0).expand(3, *SHAPE))


def test_smoothing_keeps_what_is_even_and_spreads_a_point() -> None:
    assert torch.allclose(smooth(torch.full((2, 3, 5, 4), 0.3)), torch.tensor(0.3))
    point = torch.zeros(1, 1, 5, 5)
    point[0, 0, 2, 2] = 16.0
    assert smooth(point)[0, 0, 1:4, 1:4].tolist() == [[1, 2, 1], [2, 4, 2], [1, 2, 1]]


def test_smoothed_pictures_are_smoother() -> None:
    rough, even = (invert(Options(denoise=share)).images.diff(dim=-1).abs().mean() for share in (0.0, 0.3))
    assert float(even) < 0.7 * float(rough)


# -- queries -------------------------------------------------------------------------------------------


def test_directions_are_orthonormal_and_even_on_blocks() -> None:
    u, share = directions((2, 8, 6), 5, 2, torch.Generator().manual_seed(0))
    assert share == 5 / 24
    assert torch.allclose(u @ u.T, torch.eye(5), atol=1e-5)
    blocks = u.reshape(5, 2, 4, 2, 3, 2)
    assert torch.equal(blocks, blocks[:, :, :, :1, :, :1].expand_as(blocks))


def test_blocks_that_do_not_divide_an_image_are_cut_at_its_border() -> None:
    u, share = directions((1, 7, 5), 99, 3, torch.Generator().manual_seed(0))
    assert (u.shape, share) == ((6, 35), 1.0)


def measured(options: Options, x: Tensor, classes: Tensor, seed: int = 0) -> Tensor:
    return ModelInversion(options)._from_queries(BlackBox(task(), softmax()), LOSS, Rng(seed))(x, classes)[1]


def test_with_all_directions_queries_measure_the_gradient() -> None:
    x, classes = torch.rand(2, *SHAPE), torch.tensor([0, 2])
    exact = in_clear(WhiteBox(task(), softmax()), LOSS)(x, classes)[1]
    assert torch.allclose(measured(Options(), x, classes), exact, atol=1e-3)
    mean = exact.reshape(2, 1, 4, 2, 4, 2).mean((3, 5), keepdim=True).expand(2, 1, 4, 2, 4, 2).reshape(2, *SHAPE)
    assert torch.allclose(measured(Options(block=2), x, classes), mean, atol=1e-3)


def test_with_few_directions_the_gradient_is_right_on_average() -> None:
    x, classes = torch.rand(1, *SHAPE), torch.tensor([2])
    exact = in_clear(WhiteBox(task(), softmax()), LOSS)(x, classes)[1]
    draws = torch.stack([measured(Options(directions=8), x, classes, seed) for seed in range(800)])
    error = (draws.mean(0) - exact).norm() / exact.norm()
    assert float((draws[0] - exact).norm() / exact.norm()) > 1  # one draw is mostly noise: √(64/8 − 1)
    assert float(error) < 0.15  # √(7/800) = 0.09


def test_queries_are_counted_and_enough() -> None:
    """No class is done before the others, so that each of the six measurements asks of all three."""
    made = invert(Options(directions=10, iterations=5, confidence=1.0), BlackBox(task(), softmax()))
    assert made.queries == 6 * 3 * (2 * 10 + 1)
    asked = BlackBox(task(), softmax())
    found = invert(Options(), asked)
    assert bool((WhiteBox(task(), softmax()).confidences(found.images).diag() >= 0.99).all())


# -- options -------------------------------------------------------------------------------------------

CLEAR: dict[str, Any] = {
    "cost": "confidence", "lr": 0.05, "iterations": 4, "confidence": 0.6, "start": "zeros", "denoise": 0.5
}  # fmt: skip
ASKED: dict[str, Any] = {"directions": 9, "block": 4, "difference": 1.0}


def test_every_option_is_tried() -> None:
    assert {*CLEAR, *ASKED, "patience"} == {f.name for f in fields(Options)}  # patience: above


@pytest.mark.parametrize("name", [*CLEAR, *ASKED])
def test_every_option_acts(name: str) -> None:
    model: Predictor = (WhiteBox if name in CLEAR else BlackBox)(task(), softmax())
    usual = Options(iterations=20)
    changed = replace(usual, **{name: (CLEAR | ASKED)[name]})
    assert not torch.equal(invert(usual, model).images, invert(changed, model).images)


def test_the_same_seed_gives_the_same_pictures() -> None:
    options = Options(directions=7, iterations=5)
    one, again = (invert(options, BlackBox(task(), softmax())).images for _ in range(2))
    assert torch.equal(one, again)


# -- beside others -------------------------------------------------------------------------------------


def test_it_takes_the_steps_of_the_adversarial_robustness_toolbox() -> None:
    """Without stopping: there a class goes on as long as its cost is below the threshold, and stops above it."""
    art = pytest.importorskip("art.attacks.inference.model_inversion.mi_face")
    estimators = pytest.importorskip("art.estimators.classification")
    network = nn.Sequential(task().model, nn.Softmax(1))
    network[0].load_state_dict(softmax())
    classifier = estimators.PyTorchClassifier(
        network, loss=nn.NLLLoss(), input_shape=SHAPE, nb_classes=CLASSES, clip_values=(0, 1), device_type="cpu"
    )
    theirs = art.MIFace(classifier, max_iter=50, window_length=100, threshold=1.0, learning_rate=0.1, verbose=False)
    start, classes = torch.zeros(CLASSES, *SHAPE).numpy(), torch.arange(CLASSES).numpy()
    ours = invert(Options(cost="confidence", start="zeros", iterations=50, confidence=1.0))
    assert torch.allclose(ours.images, torch.from_numpy(theirs.infer(start, classes)), atol=1e-4)
