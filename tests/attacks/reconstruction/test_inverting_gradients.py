"""Inverting Gradients on small networks: images, batches, local steps and protocols."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F
from helpers.digit_views import make_view, score
from torch import Tensor

from fedarena.attacks.reconstruction.cards.inverting_gradients import CARD, Options
from fedarena.attacks.reconstruction.helpers.adam import adam
from fedarena.attacks.reconstruction.helpers.matching import MatchingObjective, total_variation
from fedarena.attacks.reconstruction.inverting_gradients import InvertingGradients, one_less_cosine
from fedarena.contracts.inference import Guess
from fedarena.contracts.observation import Observation
from fedarena.contracts.view import View
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, flatten
from fedarena.core.threat import NotApplicable, Threat
from fedarena.problem.schedule import Schedule

QUICK = Options(iterations=100, restarts=2)


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def attack(view: View, options: Options = QUICK, seed: int = 0) -> Guess:
    guess = InvertingGradients(options)(view, Rng(seed))
    assert not isinstance(guess, NotApplicable)
    return guess


@pytest.mark.parametrize("cell", ["fedavg", "dbcl/adaptive"])
def test_single_images_come_back(cell: str) -> None:
    view, truths = make_view(cell, victims=2)
    metrics = score(attack(view), truths)
    assert metrics["recovered"] == 1
    assert metrics["label_accuracy"] == 1


def test_a_single_image_comes_back_from_five_local_steps() -> None:
    schedule = Schedule(batch_size=1, local_epochs=5, local_samples=1, lr=0.1)
    view, truths = make_view("fedavg", victims=1, schedule=schedule)
    assert score(attack(view), truths)["recovered"] == 1


def test_most_of_a_batch_comes_back() -> None:
    view, truths = make_view("fedavg", victims=1, batch=2)
    metrics = score(attack(view, replace(QUICK, iterations=250)), truths)
    assert metrics["recovered"] >= 0.5
    assert metrics["mse"] < 0.5 * metrics["prior_nearest_mse"]


def test_the_papers_form_fails_against_dbcl() -> None:
    view, truths = make_view("dbcl/paper", victims=1)
    assert score(attack(view), truths)["recovered"] == 0


# -- the objective -----------------------------------------------------------------------------------


def test_the_distance_is_one_less_the_cosine_over_all_tensors() -> None:
    g = Rng(0).torch()
    a, b = ({n: torch.randn(s, generator=g) for n, s in (("w", (3, 4)), ("b", (3,)))} for _ in range(2))
    expected = 1 - F.cosine_similarity(flatten(a), flatten(b), dim=0)
    assert one_less_cosine(b)(a | {"more": torch.ones(2)}).item() == pytest.approx(expected.item(), abs=1e-6)
    assert one_less_cosine(b)({n: 7 * t for n, t in b.items()}).item() == pytest.approx(0, abs=1e-6)
    assert one_less_cosine(b)({n: 0 * t for n, t in b.items()}).item() == 1


@pytest.mark.parametrize("length", [1e-12, 1e-7, 1e12])
def test_the_distance_and_its_gradient_are_right_of_any_length(length: float) -> None:
    """The squares of two lengths of 1e-10 have a product below all that single precision has."""
    g = Rng(0).torch()
    a, b = (torch.randn(20, generator=g) for _ in range(2))
    leaf = (length * a).requires_grad_()
    found = one_less_cosine({"w": length * b})({"w": leaf})
    (slope,) = torch.autograd.grad(found, leaf)
    double = a.double().requires_grad_()
    expected = 1 - F.cosine_similarity(double, b.double(), dim=0)
    (true,) = torch.autograd.grad(expected, double)
    assert found.item() == pytest.approx(expected.item(), abs=1e-6)
    assert torch.allclose(length * slope.double(), true, atol=1e-5)


@pytest.mark.parametrize("at_once", [None, 1, 2])
def test_values_and_gradients_at_once_are_those_of_a_plain_loop(at_once: int | None) -> None:
    view, truths = make_view("dbcl/adaptive", victims=1, batch=2)
    seen, labels = view.observations[0], truths[0][1]
    objective = MatchingObjective(
        seen, shape=(2, 1, 8, 8), classes=10, labels=labels, tv=0.01, measure=one_less_cosine, at_once=at_once
    )
    points = torch.rand(3, 128, generator=Rng(1).torch())
    values, gradients = objective.evaluate(points)
    for point, value, gradient in zip(points, values, gradients, strict=True):
        leaf = point.clone().requires_grad_()
        x = leaf.reshape(2, 1, 8, 8)
        up = seen.simulate(x, F.one_hot(labels, 10).float())
        slow = 1 - F.cosine_similarity(flatten(up), flatten(seen.target), dim=0) + 0.01 * total_variation(x)
        (expected,) = torch.autograd.grad(slow, leaf)
        assert value.item() == pytest.approx(slow.item(), rel=1e-3)
        assert torch.allclose(gradient, expected, rtol=1e-2, atol=1e-3 * float(expected.abs().max()))


def test_steps_follow_the_sign_and_stay_in_the_box() -> None:
    def slope(x: Tensor) -> tuple[Tensor, Tensor]:
        seen.append(x.clone())
        return (x * torch.tensor([1000.0, -0.001])).sum(1), torch.tensor([[1000.0, -0.001]]).expand_as(x)

    seen: list[Tensor] = []
    adam(slope, torch.full((1, 2), 0.5), 20, 0.1, -torch.inf, signed=True, project=lambda x: x.clamp(0, 1))
    assert torch.allclose(seen[1], torch.tensor([[0.4, 0.6]]), atol=1e-4), "as far along both, whatever the slope"
    assert torch.allclose(seen[-1], torch.tensor([[0.0, 1.0]]), atol=1e-4)
    assert all(float(x.min()) >= 0 and float(x.max()) <= 1 for x in seen)


def test_the_learning_rate_falls_after_three_five_and_seven_eighths() -> None:
    """Along a constant slope every step of Adam is the learning rate; in two parts as in one."""
    whole, parts = [], []
    for trace, ranges in ((whole, ((1, 80),)), (parts, ((1, 70), (71, 80)))):
        for first, last in ranges:

            def slope(x: Tensor, trace: list[float] = trace) -> tuple[Tensor, Tensor]:
                trace.append(float(x))
                return x.sum(1), torch.ones_like(x)

            start = torch.full((1, 1), trace[-1] if trace else 0.0)
            adam(slope, start, 80, 1.0, -torch.inf, first, last, signed=True)
    steps = [a - b for a, b in pairwise(whole)]
    for t, rate in ((1, 1.0), (30, 1.0), (31, 0.1), (50, 0.1), (51, 0.01), (70, 0.01), (71, 0.001)):
        assert steps[t - 1] == pytest.approx(rate, rel=0.05)
    assert parts[-1] - parts[-2] == pytest.approx(whole[-1] - whole[-2], abs=1e-4)


# -- where labels come from --------------------------------------------------------------------------


def test_labels_are_given_inferred_or_searched_for() -> None:
    view, truths = make_view("fedavg", victims=1)
    (y,) = truths[0][1].tolist()
    short = replace(QUICK, iterations=3)
    wrong = replace(view, observations=tuple(replace(o, labels=torch.tensor([3])) for o in view.observations))
    assert y != 3
    assert InvertingGradients(replace(short, labels="given")).needs_labels
    assert not InvertingGradients(short).needs_labels
    assert attack(wrong, replace(short, labels="given"))[0].labels.tolist() == [3]
    assert attack(wrong, short)[0].labels.tolist() == [y]
    searched = replace(QUICK, labels="optimized")
    assert score(attack(view, searched), truths)["label_accuracy"] == 1


def test_where_no_output_layer_is_seen_labels_are_searched_for() -> None:
    view, _ = make_view("fedavg", victims=1)
    (o,) = view.observations
    target: Tensors = {n: t for n, t in o.target.items() if not n.startswith("out")}
    blind = replace(view, observations=(replace(o, target=target, output_bias=None),))
    asked: list[bool] = []

    @dataclass(frozen=True)
    class Listening:
        def __call__(self, x: Tensor, y: Tensor) -> Tensors:
            asked.append(y.requires_grad)
            return o.simulate(x, y)

    heard = replace(blind, observations=(replace(blind.observations[0], simulate=Listening()),))
    InvertingGradients(Options(iterations=3)).run(heard, Rng(0), lambda *a: None)
    assert asked == [False, True, True, True]


# -- what is no image, and rough simulators ------------------------------------------------------------


@dataclass(frozen=True)
class Measured:
    """Products of a row with known numbers, and the cubes of some: rough without them."""

    a: Tensor
    cubes: float

    def __call__(self, x: Tensor, y: Tensor) -> Tensors:
        seen = x.flatten() @ self.a
        return {"differences": seen + self.cubes * seen**3}


def rows_view(cubes: float, rough: bool) -> tuple[View, Tensor]:
    g = torch.Generator().manual_seed(0)
    a, x = torch.randn(12, 40, generator=g), torch.rand(1, 12, generator=g)
    exact = Measured(a, cubes)
    o = Observation(
        0,
        clients=(0,),
        images=1,
        target=exact(x, torch.zeros(1, 2)),
        simulate=exact,
        rough=Measured(a, 0.0) if rough else None,
    )
    return View(
        Threat("server", "adaptive"), reading="differences", input_shape=(12,), n_classes=2, observations=(o,)
    ), x


def test_rows_of_a_table_have_no_total_variation() -> None:
    view, _ = rows_view(0.0, rough=False)
    a, b = (attack(view, replace(QUICK, tv=tv))[0].images for tv in (0.0, 5.0))
    assert torch.equal(a, b)


def test_the_last_eighth_is_the_exact_simulator_s() -> None:
    calls: list[str] = []

    @dataclass(frozen=True)
    class Counted:
        name: str
        of: Measured

        def __call__(self, x: Tensor, y: Tensor) -> Tensors:
            calls.append(self.name)
            return self.of(x, y)

    view, _ = rows_view(0.01, rough=True)
    (o,) = view.observations
    counted = replace(o, simulate=Counted("exact", o.simulate), rough=Counted("rough", o.rough))  # type: ignore[arg-type]
    InvertingGradients(Options(iterations=80)).run(replace(view, observations=(counted,)), Rng(0), lambda *a: None)
    assert (calls.count("rough"), calls.count("exact")) == (70, 11), "and one exact call before the search"


# -- options -----------------------------------------------------------------------------------------

OTHER = {
    "iterations": {"iterations": 9},
    "lr": {"lr": 0.01},
    "tv": {"tv": 0.5},
    "restarts": {"restarts": 3},
    "labels": {"labels": "optimized"},
    "init": {"init": "uniform"},
}


@pytest.mark.parametrize("name", OTHER)
def test_every_option_of_the_search_acts(name: str) -> None:
    view, _ = make_view("fedavg", victims=1)
    usual = Options(iterations=12)
    (a,), (b,) = attack(view, usual), attack(view, replace(usual, **OTHER[name]))
    assert a.evaluations != b.evaluations if name == "restarts" else not torch.equal(a.images, b.images)


def test_restarts_never_match_worse_and_one_rng_gives_one_guess() -> None:
    view, _ = make_view("fedavg", victims=1)
    short = Options(iterations=20)
    one, five, again = (attack(view, replace(short, restarts=n))[0] for n in (1, 5, 5))
    assert five.match <= one.match * 1.001
    assert five.evaluations == 5 * one.evaluations
    assert torch.equal(five.images, again.images)


def test_options_say_which_uploads_are_attacked() -> None:
    view, _ = make_view("fedavg", victims=1, batch=2)
    assert isinstance(InvertingGradients(replace(QUICK, max_batch=1))(view, Rng(0)), NotApplicable)
    watch = InvertingGradients(Options(start=2, window=5, victims=2)).watch(Schedule(rounds=20))
    assert (watch.first, watch.last, watch.victims) == (2, 6, (2, 4))


def test_the_card_names_this_attack() -> None:
    assert CARD.load() is InvertingGradients
    assert CARD.parse({"restarts": "3", "labels": "given"}) == Options(restarts=3, labels="given")
