"""Samples read off a dense first layer: exactly, through protocols, under noise and out of batches."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from helpers.dense_views import make_view
from helpers.digit_views import digits
from helpers.victims import victims
from torch import Tensor

from fedarena.attacks.reconstruction.analytic import Analytic, extremes
from fedarena.attacks.reconstruction.cards.analytic import CARD, Options
from fedarena.attacks.reconstruction.helpers.first_layer import Affine, affine, apart, first_layer, ratio, strongest
from fedarena.attacks.reconstruction.helpers.image_distribution import GaussianImages, LeastNorm
from fedarena.contracts.inference import Guess
from fedarena.contracts.observation import Observation
from fedarena.contracts.simulators import ThroughProtocol
from fedarena.contracts.view import View
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.core.threat import NotApplicable, Threat
from fedarena.defenses.dbcl.protocol import DBCL
from fedarena.goals.metrics import reconstruction as judge
from fedarena.problem.schedule import Schedule


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def attack(view: View, options: Options = Options()) -> Guess:  # noqa: B008  (frozen)
    view = view if options.prior == "population" else replace(view, population=None)
    guess = Analytic(options)(view, Rng(0))
    assert not isinstance(guess, NotApplicable), guess.reason
    return guess


def score(view: View, truths: list[tuple[Tensor, Tensor]], options: Options = Options()) -> dict[str, float]:  # noqa: B008
    return judge.reconstruction_metrics(attack(view, options), victims(truths))


@pytest.mark.parametrize("activation", ["relu", "sigmoid"])
def test_single_samples_come_back_exactly(activation: str) -> None:
    view, truths = make_view(activation=activation)
    metrics = score(view, truths)
    assert metrics["psnr"] > 80
    assert metrics["label_accuracy"] == 1
    assert metrics["match"] < 1e-6


def test_a_single_sample_comes_back_from_local_steps() -> None:
    view, truths = make_view(schedule=Schedule(local_epochs=5, lr=0.1))
    assert score(view, truths)["psnr"] > 60


def test_samples_come_back_from_units_that_are_active_for_one_alone() -> None:
    view, truths = make_view(batch=3)
    metrics = score(view, truths)
    assert metrics["recovered"] == 1
    assert metrics["label_accuracy"] == 1, "and labels are put in their order"


def test_a_batch_without_such_units_comes_back_in_part_at_best() -> None:
    view, truths = make_view(batch=8, activation="sigmoid")
    assert score(view, truths)["recovered"] < 0.4


def test_single_rows_are_taken_before_their_mixtures() -> None:
    a, b, c = torch.rand(3, 9, generator=Rng(0).torch()).double()
    mixtures = [(a + b) / 2, 0.3 * b + 0.7 * c, 2 * a - b, (a + b + c) / 3]
    found = extremes([a], [*mixtures, c + 1e-9, b], 2)
    assert {tuple(x.tolist()) for x in found} == {tuple(x.tolist()) for x in (b, c + 1e-9)}
    assert len(extremes([a], mixtures, 9)) == 4
    assert extremes([a], mixtures, 0) == []


def test_the_attackers_own_samples_fill_in_what_a_sketch_leaves_open() -> None:
    view, truths = make_view("dbcl", victims=12)
    bare, filled = (score(view, truths, Options(prior=prior)) for prior in ("none", "population"))
    assert filled["ssim"] > bare["ssim"] + 0.2
    assert filled["recovered"] >= 0.5 > bare["recovered"]
    assert filled["match"] < 0.01


def test_the_papers_form_takes_the_transpose_for_the_gradient() -> None:
    view, truths = make_view("dbcl/paper", victims=6)
    assert score(view, truths, Options(prior="population"))["recovered"] == 0


# -- the pieces --------------------------------------------------------------------------------------


def test_the_map_behind_a_sketch_is_its_transpose() -> None:
    view, truths = make_view("dbcl", victims=1)
    (seen,), (x, _) = view.observations, truths[0]
    layer = first_layer(seen.target)
    assert not isinstance(layer, str)
    of = affine(view, seen, layer, [torch.rand(64, generator=Rng(1).torch())])
    assert isinstance(of, Affine)
    assert isinstance(seen.simulate, ThroughProtocol)
    assert isinstance(seen.simulate.defense, DBCL)
    sketch = seen.simulate.defense.wire.open(seen.simulate.down)[1]["fc1.weight"].dense()
    assert of.a is not None
    assert torch.allclose(of.a, sketch.T.double(), atol=1e-4)
    assert torch.allclose(of(x.flatten().double()), ratio(layer.rows(seen.target)), atol=1e-4)


@dataclass(frozen=True)
class Shifted:
    """A first layer that sees (x − mean)/std, with a gradient of random δ."""

    delta: Tensor
    mean: float
    std: float

    def __call__(self, x: Tensor, y: Tensor) -> Tensors:
        z = (x.flatten(1).mean(0) - self.mean) / self.std
        return {"fc1.weight": self.delta[:, None] * z, "fc1.bias": self.delta}


def test_a_network_that_shifts_its_inputs_is_undone() -> None:
    simulate = Shifted(torch.randn(7, generator=Rng(0).torch()), 0.3, 0.25)
    x = digits()[0][:1]
    o = Observation(0, clients=(0,), images=1, target=simulate(x, torch.zeros(1, 10)), simulate=simulate)
    view = View(Threat("server", "adaptive"), reading="toy", input_shape=(1, 8, 8), n_classes=10, observations=(o,))
    assert torch.allclose(attack(view)[0].images, x, atol=1e-3)


@dataclass(frozen=True)
class Gated:
    """A layer whose units are above their thresholds for images below a grey value only."""

    delta: Tensor
    below: float

    def __call__(self, x: Tensor, y: Tensor) -> Tensors:
        z = x.flatten(1).mean(0)
        delta = torch.where(z.mean() < self.below, self.delta, 0.0)
        return {"fc1.weight": delta[:, None] * z, "fc1.bias": delta}


def test_a_layer_where_no_random_image_leaves_a_trace_is_read() -> None:
    simulate = Gated(torch.randn(7, generator=Rng(0).torch()), 0.4)
    x = digits()[0][:1]
    assert 0 < float(x.mean()) < simulate.below
    o = Observation(0, clients=(0,), images=1, target=simulate(x, torch.zeros(1, 10)), simulate=simulate)
    view = View(Threat("server", "adaptive"), reading="toy", input_shape=(1, 8, 8), n_classes=10, observations=(o,))
    assert torch.allclose(attack(view)[0].images, x, atol=1e-6)


def test_all_rows_together_withstand_noise_better_than_the_strongest() -> None:
    g, (x, _) = Rng(0).torch(), digits()
    delta = torch.randn(50, generator=g).double()
    clean = delta[:, None] * torch.cat([x[0].flatten().double(), torch.ones(1)])
    rows = clean + 0.05 * torch.randn(clean.shape, generator=g).double()
    found, variance = strongest(rows)
    one = rows[rows[:, -1].abs().argmax()]
    errors = [(f - x[0].flatten()).square().mean() for f in (found, one[:-1] / one[-1])]
    assert errors[0] < 0.3 * errors[1]
    assert variance == pytest.approx(0.05**2 / float(delta.square().sum()), rel=0.3)
    assert strongest(clean)[1] < 1e-20


@pytest.mark.parametrize("noise", [0.0, 1e-6, 0.05, 10.0])
@pytest.mark.parametrize("units", [1, 2, 50])
def test_the_strongest_direction_is_that_of_a_decomposition(noise: float, units: int) -> None:
    g = Rng(0).torch()
    rows = torch.randn(units, 1, generator=g).double() * torch.cat([torch.rand(64, generator=g), torch.ones(1)])
    rows = rows + noise * torch.randn(rows.shape, generator=g).double()
    _, sizes, right = torch.linalg.svd(rows, full_matrices=False)
    found, variance = strongest(rows)
    assert torch.allclose(found, right[0, :-1] / right[0, -1], rtol=1e-8, atol=1e-8)
    spread = float(sizes[1:].square().sum()) / max(1, 64 * (units - 1))
    assert variance == pytest.approx(spread / float(sizes[0] * right[0, -1]) ** 2, rel=1e-6, abs=1e-20)


def test_the_longest_row_need_not_lie_along_the_strongest_direction() -> None:
    rows = torch.tensor([[3.0, 0, 0.1], [0, 2, 1], [0, 2, 1], [0, 2, 1]]).double()
    rows[0, 1:] = 0  # its direction is orthogonal to that of the others, and so power iteration stays there
    assert torch.allclose(strongest(rows)[0], torch.tensor([0.0, 2.0]).double())


def test_rows_that_agree_are_told_from_mixtures() -> None:
    g = Rng(0).torch()
    a, b = torch.rand(2, 9, generator=g).double()
    rows = torch.stack([2 * a, -a, 3 * b, 0.5 * b, b, a + b, 2 * a - b, 0 * a])
    groups, rest = apart(rows, 2)
    assert [len(group) for group in groups] == [3, 2]
    assert torch.equal(groups[1], rows[:2])
    assert torch.equal(rest, rows[5:7])
    assert len(apart(rows, 1)[0]) == 1


def test_equal_rows_of_units_with_equal_weights_show_no_sample() -> None:
    a, b = torch.rand(2, 9, generator=Rng(0).torch()).double()
    rows = torch.stack([a + b, a + b, 2 * a, -a])
    groups, rest = apart(rows, 2)
    assert [len(group) for group in groups] == [2]
    assert torch.equal(groups[0], rows[2:])
    assert torch.equal(rest, rows[:1])


def test_the_laws_agree_where_everything_was_seen() -> None:
    g = Rng(0).torch()
    own, x, a = torch.rand(50, 6, generator=g), torch.rand(6, generator=g).double(), torch.randn(9, 6, generator=g)
    of = Affine(a.double(), torch.ones(9).double())
    for law in (LeastNorm(), GaussianImages.of(own)):
        assert torch.allclose(law(of(x), of, 0.0), x, atol=1e-2)


def test_the_gaussian_law_is_its_conditional_mean_and_keeps_to_the_box() -> None:
    mean, covariance = torch.tensor([0.5, 0.5]).double(), torch.tensor([[1.0, 0.9], [0.9, 1.0]]).double()
    law, first = GaussianImages(mean, covariance), Affine(torch.tensor([[1.0, 0.0]]).double(), torch.zeros(1).double())
    assert law(torch.tensor([0.8]).double(), first, 0.0).tolist() == pytest.approx([0.8, 0.77], abs=1e-4)
    noisy = law(torch.tensor([0.8]).double(), first, 1.0)
    assert noisy.tolist() == pytest.approx([0.65, 0.635], abs=1e-4)
    total = Affine(torch.tensor([[1.0, 1.0, 0.0]]).double(), torch.zeros(1).double())
    wide = GaussianImages(torch.tensor([0.9, 0.1, 0.5]).double(), torch.eye(3).double() * torch.tensor([0.01, 1, 1]))
    kept = wide(torch.tensor([0.5]).double(), total, 0.0)
    assert kept.tolist() == pytest.approx([0.5, 0.0, 0.5], abs=1e-2), "what the second pixel lacks the first one has"


# -- what cannot be read ------------------------------------------------------------------------------


@dataclass(frozen=True)
class WithMomentum:
    """An upload of one length that holds a share of the one before it, as under the two-stage protocol."""

    gradient: Any
    before: Tensors

    def __call__(self, x: Tensor, y: Tensor) -> Tensors:
        mixed = {name: 0.9 * t + 0.1 * self.before[name] for name, t in self.gradient(x, y).items()}
        length = sum(t.square().sum() for t in mixed.values()).sqrt()
        return {name: t / length for name, t in mixed.items()}


def unreadable(view: View, truths: list[tuple[Tensor, Tensor]]) -> Observation:
    """The second upload, with momentum of the first."""
    (first, second), (x, y) = view.observations[:2], truths[1]
    simulate = WithMomentum(second.simulate, first.target)
    return replace(second, target=simulate(x, F.one_hot(y, 10).float()), simulate=simulate)


def test_what_can_be_read_is_read_and_grey_is_guessed_for_the_rest() -> None:
    view, truths = make_view(victims=3)
    first, _, last = view.observations
    nothing = replace(last, target={name: 0 * t for name, t in last.target.items()})
    guess = attack(replace(view, observations=(first, unreadable(view, truths), nothing)))
    assert (guess[0].images - truths[0][0]).abs().max() < 1e-3
    assert all(torch.equal(g.images, torch.full_like(g.images, 0.5)) for g in guess[1:])
    assert [g.blind for g in guess] == [0, 1, 1]
    assert judge.reconstruction_metrics(guess, victims(truths))["blind"] == pytest.approx(2 / 3)
    assert guess[0].match < 1e-6 < min(g.match for g in guess[1:])
    assert guess[1].labels.tolist() == truths[1][1].tolist(), "which the output layer shows all the same"


def test_where_nothing_can_be_read_each_reason_is_given_once() -> None:
    view, truths = make_view(victims=2)
    held = unreadable(view, truths)
    nothing = replace(held, target={n: 0 * t for n, t in held.target.items()}, simulate=view.observations[1].simulate)
    found = Analytic(Options())(replace(view, observations=(held, nothing, held), population=None), Rng(0))
    assert isinstance(found, NotApplicable)
    assert found.reason.count("the momentum of earlier rounds is in it") == 1
    assert found.reason.endswith("; the first layer's gradient is 0")


# -- where it cannot start ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "cell", "options", "why"),
    [
        ("lenet-dlg", "fedavg", {}, "convolutional"),
        ("lenet-dlg", "dbcl", {}, "more than one vector"),
        ("mlp", "fedavg", {"bias": "false"}, "no bias"),
    ],
)
def test_not_applicable(model: str, cell: str, options: dict[str, str], why: str) -> None:
    view, _ = make_view(cell, 1, 1, model, **options)
    found = Analytic(Options())(replace(view, population=None), Rng(0))
    assert isinstance(found, NotApplicable)
    assert why in found.reason


def test_not_applicable_to_what_is_no_gradient_of_layers() -> None:
    view, _ = make_view(victims=1)
    (o,) = view.observations
    for target, why in (
        ({"differences": torch.ones(3)}, "no gradient of layers"),
        ({"fc1.weight": torch.ones(2), "fc1.bias": torch.ones(2)}, "not its rows"),
        ({n: 0 * t for n, t in o.target.items()}, "is 0"),
    ):
        found = Analytic(Options())(replace(view, observations=(replace(o, target=target),)), Rng(0))
        assert isinstance(found, NotApplicable)
        assert why in found.reason


def test_where_no_output_layer_is_seen_samples_come_back_without_labels() -> None:
    view, truths = make_view(victims=2)
    bare = [
        replace(o, target={n: t for n, t in o.target.items() if n.startswith("fc1")}, output_bias=None)
        for o in view.observations
    ]
    guess = attack(replace(view, observations=tuple(bare)))
    assert judge.reconstruction_metrics(guess, victims(truths))["psnr"] > 80
    assert [g.labels.tolist() for g in guess] == [[0], [0]]


def test_options_say_which_uploads_are_attacked_and_what_is_known() -> None:
    assert Analytic(Options(prior="population")).needs_population
    assert not Analytic(Options()).needs_population
    watch = Analytic(Options(start=2, window=5, victims=2)).watch(Schedule(rounds=20))
    assert (watch.first, watch.last, watch.victims) == (2, 6, (2, 4))
    with pytest.raises(UserError, match="attack analytic: option 'start' is 20"):
        Analytic(Options(start=20)).watch(Schedule(rounds=20))


def test_the_card_names_this_attack() -> None:
    assert CARD.load() is Analytic
    assert CARD.parse({"prior": "population"}) == Options(prior="population")
