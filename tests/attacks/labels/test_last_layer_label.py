"""Labels from the output layer, exact and noisy, as seen and as estimated."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import pytest
import torch
from helpers.membership_views import digits, play
from torch import Tensor

from fedarena.attacks.labels.cards.last_layer_label import Options
from fedarena.attacks.labels.last_layer_label import LastLayerLabel, moved, name_classes, showing
from fedarena.contracts.estimand import UPDATE
from fedarena.contracts.inference import Labels
from fedarena.contracts.observation import Simulator
from fedarena.contracts.view import View
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.core.threat import NotApplicable
from fedarena.goals.metrics.labels import label_metrics, prior_label_metrics

BIAS, ROWS = LastLayerLabel(Options()), LastLayerLabel(Options(evidence="rows"))


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def labelled(batch: int, rounds: int, activation: str = "relu") -> tuple[View, list[Tensor]]:
    """The view of whole gradients without candidates, and the classes behind it."""
    view, members = play(batch, rounds, activation=activation)
    truths = [o.candidates.y[m] for o, m in zip(view.observations, members, strict=True) if o.candidates is not None]
    return replace(view, observations=tuple(replace(o, candidates=None) for o in view.observations)), truths


def accuracy(attack: LastLayerLabel, view: View, truths: list[Tensor]) -> float:
    answers = attack(view, Rng(0))
    assert not isinstance(answers, NotApplicable), answers.reason
    named: list[Labels] = [a for a in answers if isinstance(a, Labels)]
    return label_metrics(named, truths, [len(t) for t in truths])["label_accuracy"]


def noisy(tensors: Tensors, sigma: float, seed: int) -> Tensors:
    """Noise of `sigma` times the whole length on every entry."""
    length = float(torch.cat([t.flatten() for t in tensors.values()]).norm())
    generator = Rng(seed).torch()
    return {n: t + sigma * length * torch.randn(t.shape, generator=generator) for n, t in tensors.items()}


@pytest.mark.parametrize("attack", [BIAS, ROWS], ids=["bias", "rows"])
@pytest.mark.parametrize("activation", ["relu", "sigmoid"])
def test_one_sample_always(attack: LastLayerLabel, activation: str) -> None:
    assert accuracy(attack, *labelled(1, 40, activation)) == 1


def test_batches_by_the_bias_far_above_their_prior() -> None:
    for batch in (4, 16):
        view, truths = labelled(batch, 20)
        prior = prior_label_metrics(truths, [batch] * 20, digits()[1])["prior_label_accuracy"]
        assert accuracy(BIAS, view, truths) > 0.98 > prior + 0.1


def test_a_small_batch_by_rows() -> None:
    assert accuracy(ROWS, *labelled(4, 20)) > 0.9


def estimated(view: View, sigma: float) -> View:
    """Nothing seen of the parameters but a noisy estimate of their gradient."""
    return replace(
        view,
        observations=tuple(
            replace(o, target={"differences": torch.zeros(100)}, estimate=noisy(o.target, sigma, i))
            for i, o in enumerate(view.observations)
        ),
    )


def test_rows_withstand_noise_where_features_are_large() -> None:
    """Noise of ‖g‖/√K an entry, as in an estimate from K = 20 directions."""
    view, truths = labelled(1, 40, "sigmoid")
    unclear = estimated(view, 20**-0.5)
    assert accuracy(ROWS, unclear, truths) > accuracy(BIAS, unclear, truths) + 0.1
    view, truths = labelled(1, 40, "relu")
    unclear = estimated(view, 20**-0.5)
    assert accuracy(BIAS, unclear, truths) > accuracy(ROWS, unclear, truths) + 0.1


def test_only_an_estimate_of_the_gradient_comes_before_what_was_seen() -> None:
    seen = labelled(1, 1)[0].observations[0]
    other = {"out.bias": torch.zeros(10)}
    assert showing(replace(seen, estimate=other), "out.bias") is other
    assert showing(replace(seen, estimate=other), "out.weight") is seen.target
    assert showing(replace(seen, estimate=other, estimate_of=UPDATE), "out.bias") is seen.target
    assert showing(replace(seen, target={}, estimate=other, estimate_of=UPDATE), "out.bias") is None


@dataclass(frozen=True)
class Times:
    """An upload in another unit, as an update of many steps is."""

    simulate: Simulator
    factor: float

    def __call__(self, x: Tensor, y: Tensor) -> Tensors:
        return {name: self.factor * t for name, t in self.simulate(x, y).items()}


@pytest.mark.parametrize("factor", [1.0, 0.01, 30.0])
def test_the_unit_of_what_was_seen_is_found_by_simulation(factor: float) -> None:
    view, truths = labelled(16, 10)
    scaled = tuple(
        replace(o, target={n: factor * t for n, t in o.target.items()}, simulate=Times(o.simulate, factor))
        for o in view.observations
    )
    other = replace(view, observations=scaled)
    assert moved(scaled[0], "out.bias", other) == pytest.approx(factor, rel=1e-4)
    assert accuracy(BIAS, other, truths) == accuracy(BIAS, view, truths) > 0.98


@pytest.mark.parametrize(("attack", "name"), [(BIAS, "out.bias"), (ROWS, "out.weight")])
def test_a_view_without_the_output_layer(attack: LastLayerLabel, name: str) -> None:
    view, _ = labelled(1, 1)
    blind = tuple(replace(o, target={"differences": torch.zeros(3)}) for o in view.observations)
    found = attack(replace(view, observations=blind), Rng(0))
    assert isinstance(found, NotApplicable)
    assert name in found.reason


def test_rows_need_no_bias() -> None:
    view, truths = labelled(1, 20)
    without = tuple(
        replace(o, target={n: t for n, t in o.target.items() if n != "out.bias"}) for o in view.observations
    )
    assert accuracy(ROWS, replace(view, observations=without), truths) > 0.9


@pytest.mark.parametrize("counts", [(1, 0, 0, 0), (2, 1, 0, 1), (0, 5, 3, 0), (7, 1, 0, 0), (2, 2, 2, 2)])
def test_uniform_predictions_give_the_counts_exactly(counts: tuple[int, ...]) -> None:
    n = sum(counts)
    for unit in (1e-6, 1.0, 50.0):
        s = unit * (torch.full((4,), 0.25) - torch.tensor(counts) / n)
        assert Counter(name_classes(s, n, unit).tolist()) == Counter({c: k for c, k in enumerate(counts) if k})


def test_what_is_not_finite_shows_nothing() -> None:
    assert name_classes(torch.tensor([torch.nan, 0.0, -1.0]), 1, 1.0).tolist() == [2]
