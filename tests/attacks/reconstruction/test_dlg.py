"""DLG on the sigmoid LeNet and scikit-learn's digits, at initial parameters, as its paper runs it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import pytest
import torch
from helpers.digit_views import CLASSES, make_view, score
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from fedarena.attacks.reconstruction.cards.dlg import CARD, Options
from fedarena.attacks.reconstruction.dlg import DLG
from fedarena.attacks.reconstruction.helpers.adam import adam
from fedarena.attacks.reconstruction.helpers.matching import MatchingObjective, total_variation
from fedarena.attacks.reconstruction.helpers.output_labels import infer_labels
from fedarena.contracts.inference import Guess
from fedarena.contracts.observation import Observation, Simulator
from fedarena.contracts.view import View
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.core.threat import NotApplicable, Threat
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Task

QUICK = Options(restarts=4)


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def attack(view: View, options: Options = QUICK, seed: int = 0) -> Guess:
    guess = DLG(options)(view, Rng(seed))
    assert not isinstance(guess, NotApplicable)
    return guess


@pytest.mark.parametrize("cell", ["fedavg", "dbcl/adaptive"])
def test_images_come_back_from_what_crosses_the_wire(cell: str) -> None:
    view, truths = make_view(cell, victims=2)
    metrics = score(attack(view, Options()), truths)
    assert metrics["recovered"] == 1
    assert metrics["ssim"] > 0.99
    assert metrics["label_accuracy"] == 1
    assert metrics["mse"] < 0.01 * metrics["prior_nearest_mse"]


def test_the_papers_form_fails_against_dbcl() -> None:
    view, truths = make_view("dbcl/paper", victims=1)
    guess = attack(view)
    metrics = score(guess, truths)
    assert metrics["recovered"] == 0
    assert metrics["mse"] > metrics["prior_mean_mse"]
    assert min(g.match for g in guess) > 0.1, "no batch explains a target that no batch has produced"


@pytest.mark.parametrize(
    "options",
    [
        replace(QUICK, labels="inferred"),
        replace(QUICK, labels="given"),
        replace(QUICK, init="normal"),
        replace(QUICK, init="uniform"),
        replace(QUICK, optimizer="adam", iterations=300, tolerance=1e-4),
    ],
    ids=lambda o: f"{o.optimizer}-{o.labels}-{o.init}",
)
def test_every_way_of_searching_recovers_the_undefended_upload(options: Options) -> None:
    view, truths = make_view("fedavg", victims=1)
    told = tuple(replace(o, labels=y) for o, (_, y) in zip(view.observations, truths, strict=True))
    metrics = score(attack(replace(view, observations=told), options), truths)
    assert metrics["recovered"] == 1
    assert metrics["label_accuracy"] == 1


def test_a_batch_of_two_comes_back() -> None:
    view, truths = make_view("fedavg", victims=1, batch=2)
    metrics = score(attack(view, Options()), truths)
    assert metrics["recovered"] == 1
    assert metrics["label_accuracy"] == 1


def test_given_labels_are_declared_and_used() -> None:
    view, _ = make_view("fedavg", victims=1)
    wrong = tuple(replace(o, labels=torch.tensor([3])) for o in view.observations)
    options = replace(QUICK, labels="given", iterations=5)
    assert DLG(options).needs_labels
    assert not DLG(QUICK).needs_labels
    assert attack(replace(view, observations=wrong), options)[0].labels.tolist() == [3]


def test_the_same_rng_gives_the_same_guess() -> None:
    view, _ = make_view("dbcl/adaptive", victims=1)
    options = replace(QUICK, iterations=20)
    a, b, c = attack(view, options), attack(view, options), attack(view, options, seed=1)
    assert torch.equal(a[0].images, b[0].images)
    assert (a[0].match, a[0].evaluations) == (b[0].match, b[0].evaluations)
    assert not torch.equal(a[0].images, c[0].images)


def test_more_restarts_never_match_worse() -> None:
    view, _ = make_view("dbcl/adaptive", victims=2)
    short = Options(iterations=15, restarts=1)
    for one, eight in zip(attack(view, short), attack(view, replace(short, restarts=8)), strict=True):
        assert eight.evaluations == 8 * one.evaluations
        assert eight.match <= one.match * 1.001  # the first start is among the eight


def test_progress_is_reported_up_to_the_end() -> None:
    view, _ = make_view("fedavg", victims=2)
    seen: list[float] = []
    DLG(replace(QUICK, iterations=2))(view, Rng(0), lambda share, text: seen.append(share))
    assert seen == pytest.approx([0, 1 / 6, 1 / 3, 1 / 2, 1 / 2, 2 / 3, 5 / 6, 1])


def test_not_applicable() -> None:
    view, _ = make_view("fedavg", victims=1, batch=4)
    big = DLG(replace(QUICK, max_batch=3))(view, Rng(0))
    assert isinstance(big, NotApplicable)
    assert "4 samples" in big.reason
    blind = replace(view, observations=tuple(replace(o, output_bias=None) for o in view.observations))
    for labels, expected in (("inferred", NotApplicable), ("optimized", list)):
        made = DLG(replace(QUICK, labels=labels, iterations=1))(blind, Rng(0))
        assert isinstance(made, expected)


def test_total_variation_needs_images() -> None:
    made = DLG(replace(QUICK, tv=0.1))
    images, rows = (
        Task(torch.nn.Linear(64, 10), input_shape=shape, n_classes=10, sizes=(4,), schedule=Schedule())
        for shape in ((1, 8, 8), (64,))
    )
    made.fit(images)
    with pytest.raises(UserError, match=r"option 'tv' is 0\.1.*shape \(64,\)"):
        made.fit(rows)


def test_total_variation_smooths() -> None:
    view, _ = make_view("dbcl/paper", victims=1)
    rough, smooth = (attack(view, replace(QUICK, tv=tv, iterations=30))[0].images for tv in (0.0, 1.0))
    assert total_variation(smooth) < 0.1 * total_variation(rough)
    x = torch.tensor([[[[0.0, 1.0], [3.0, 7.0]]]])
    assert total_variation(x).item() == pytest.approx((1 + 4) / 2 + (3 + 6) / 2)


# -- labels ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [1, 2, 4, 8])
@pytest.mark.parametrize("cell", ["fedavg", "dbcl/adaptive"])
def test_labels_follow_from_the_output_bias(cell: str, batch: int) -> None:
    view, truths = make_view(cell, victims=5, batch=batch)
    starts = 0.1 * torch.rand((4, batch, 1, 8, 8), generator=Rng(0).torch())
    for seen, (_, y) in zip(view.observations, truths, strict=True):
        assert Counter(infer_labels(seen, starts, CLASSES).tolist()) == Counter(y.tolist())


def test_labels_follow_from_local_updates_too() -> None:
    view, truths = make_view("fedavg", 5, 4, schedule=Schedule(batch_size=2, local_epochs=2, lr=0.05))
    starts = 0.1 * torch.rand((4, 4, 1, 8, 8), generator=Rng(0).torch())
    for seen, (_, y) in zip(view.observations, truths, strict=True):
        assert Counter(infer_labels(seen, starts, CLASSES).tolist()) == Counter(y.tolist())


# -- the objective -----------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", ["fedavg", "dbcl/adaptive", "dbcl/paper"])
@pytest.mark.parametrize("fixed", [False, True])
def test_batched_values_and_gradients_equal_a_plain_loop(cell: str, fixed: bool) -> None:
    view, truths = make_view(cell, victims=1, batch=2)
    seen, labels = view.observations[0], truths[0][1] if fixed else None
    objective = MatchingObjective(seen, shape=(2, 1, 8, 8), classes=CLASSES, labels=labels, tv=0.01)
    points = torch.randn(3, 2 * 64 + (0 if fixed else 2 * CLASSES), generator=Rng(1).torch())
    values, gradients = objective.evaluate(points)
    size = sum(t.square().sum() for t in seen.target.values())
    for point, value, gradient in zip(points, values, gradients, strict=True):
        leaf = point.clone().requires_grad_()
        x, logits = leaf[:128].reshape(2, 1, 8, 8), leaf[128:].reshape(2, -1)
        y = F.one_hot(labels, CLASSES).float() if labels is not None else logits.softmax(1)
        up = seen.simulate(x, y)
        slow = sum((up[name] - t).square().sum() for name, t in seen.target.items()) / size + 0.01 * total_variation(x)
        (expected,) = torch.autograd.grad(slow, leaf)
        assert value.item() == pytest.approx(slow.item(), rel=1e-4)
        assert torch.allclose(gradient, expected, rtol=1e-3, atol=1e-5 * float(expected.abs().max()))


@dataclass(frozen=True)
class Drawing:
    """Another simulator, along a direction that is drawn from a seed that everybody knows."""

    of: Simulator

    def __call__(self, x: Tensor, y: Tensor) -> Tensors:
        generator = torch.Generator().manual_seed(7)
        return {name: t * torch.randn(t.shape, generator=generator) for name, t in self.of(x, y).items()}


def test_a_simulator_that_draws_draws_the_same_for_all_candidates() -> None:
    view, truths = make_view("fedavg", victims=1)
    seen, (x, y) = view.observations[0], truths[0]
    drawing = replace(seen, simulate=Drawing(seen.simulate))
    target = drawing.simulate(x, F.one_hot(y, CLASSES).float())
    seen = replace(drawing, target=target)
    objective = MatchingObjective(seen=seen, shape=(1, 1, 8, 8), classes=CLASSES, labels=y, tv=0.0)
    values, _ = objective.evaluate(x.reshape(1, -1).repeat(3, 1))
    assert (values < 1e-10).all()


def test_the_truth_has_distance_zero() -> None:
    view, truths = make_view("dbcl/adaptive", victims=1)
    x, y = truths[0]
    values, _ = MatchingObjective(view.observations[0], shape=(1, 1, 8, 8), classes=CLASSES, labels=y, tv=0.0).evaluate(
        x.reshape(1, -1)
    )
    assert values.item() < 1e-10


# -- what is not finite ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Spiky:
    """x ↦ x², undefined where the first pixel is below `floor`."""

    floor: float

    def __call__(self, x: Tensor, y: Tensor) -> Tensors:
        return {"out": torch.where(x[:, 0] < self.floor, torch.nan, 1.0)[:, None] * x.square()}


def spiky_view(floor: float) -> View:
    target = {"out": torch.full((1, 4), 0.25)}
    return View(
        Threat("server", "adaptive"),
        reading="toy",
        input_shape=(4,),
        n_classes=2,
        observations=(Observation(0, clients=(0,), images=1, target=target, simulate=Spiky(floor)),),
    )


@pytest.mark.parametrize("optimizer", ["lbfgs", "adam"])
def test_restarts_that_are_not_finite_are_dropped(optimizer: str) -> None:
    found = attack(spiky_view(0.0), Options(optimizer=optimizer, init="normal", restarts=8, iterations=300))[0]
    assert found.match < 1e-3
    assert torch.allclose(found.images.abs(), torch.full((1, 4), 0.5), atol=0.02)


@pytest.mark.parametrize("optimizer", ["lbfgs", "adam"])
def test_without_any_finite_restart_a_starting_guess_is_returned(optimizer: str) -> None:
    found = attack(spiky_view(1e9), Options(optimizer=optimizer, restarts=3, iterations=10))[0]
    assert torch.isfinite(found.images).all()
    assert found.match == float("inf")


# -- Adam, and when to look --------------------------------------------------------------------------


def test_adam_minimises_a_quadratic_and_stops_at_the_target() -> None:
    calls: list[int] = []

    def bowl(x: Tensor) -> tuple[Tensor, Tensor]:
        calls.append(len(x))
        return (x - 1).square().sum(1), 2 * (x - 1)

    found = adam(bowl, torch.zeros(3, 5), 500, lr=0.1, target=1e-4)
    assert found.values.min() <= 1e-4
    assert found.evaluations == sum(calls) < 3 * 500


@given(rounds=st.integers(1, 200), start=st.integers(0, 50), window=st.integers(2, 80), victims=st.integers(1, 30))
@settings(max_examples=200, deadline=None)
def test_victims_lie_in_the_window_and_a_round_follows_each(rounds: int, start: int, window: int, victims: int) -> None:
    attack = DLG(Options(start=start, window=window, victims=victims))
    if start >= rounds:
        with pytest.raises(UserError, match=f"option 'start' is {start}"):
            attack.watch(Schedule(rounds=rounds))
        return
    watch = attack.watch(Schedule(rounds=rounds))
    assert watch.first == watch.victims[0] == start
    assert watch.last < min(rounds, start + window)
    assert len(set(watch.victims)) == len(watch.victims) == max(1, min(victims, watch.last - watch.first))
    assert list(watch.victims) == sorted(watch.victims)
    if rounds - start > 1:
        assert watch.victims[-1] < watch.last


def test_the_card_names_this_attack() -> None:
    assert CARD.load() is DLG
    assert CARD.parse({"restarts": "3", "labels": "inferred"}) == Options(restarts=3, labels="inferred")
    with pytest.raises(UserError, match="option 'init' is 'grey'"):
        CARD.parse({"init": "grey"})
