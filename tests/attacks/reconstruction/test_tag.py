"""TAG: the distance by hand, its gradient, and texts that come back from a small transformer."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from helpers.text_views import text_view
from torch import nn

from fedarena.attacks.reconstruction.cards.tag import Options
from fedarena.attacks.reconstruction.tag import Tag, WordWeights, squared_and_absolute
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.threat import NotApplicable
from fedarena.goals.metrics.text_similarity import text_metrics
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Task

FAST = {"width": "32"}


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def test_the_distance_is_that_of_the_formula() -> None:
    """Differences (1, −2) and (3): squares 5 + 9, absolutes α·3 + α/2·3, over squares of the target 4 + 1."""
    target = {"a": torch.tensor([0.0, 2.0]), "b": torch.tensor([1.0])}
    seen = {"a": torch.tensor([1.0, 0.0]), "b": torch.tensor([4.0]), "other": torch.ones(3)}
    for alpha, expected in ((0.0, 14 / 5), (0.2, (14 + 0.6 + 0.3) / 5)):
        assert float(squared_and_absolute(target, alpha)(seen)) == pytest.approx(expected)
    assert float(squared_and_absolute(target, 1.0)(target)) == 0.0


def test_a_target_of_zero_is_measured_absolutely() -> None:
    zero = {"a": torch.zeros(2)}
    assert float(squared_and_absolute(zero, 1.0)({"a": torch.tensor([1.0, -2.0])})) == pytest.approx(5 + 3)


def test_a_place_holds_weights_of_words() -> None:
    x = WordWeights().images(torch.randn(2, 7, 165, generator=Rng(0).torch()))
    torch.testing.assert_close(x.sum(-1), torch.ones(2, 7))
    assert bool((x > 0).all())


@pytest.mark.parametrize("labels", ["inferred", "given"])
def test_a_text_comes_back(labels: str) -> None:
    view, [(x, y)] = text_view(options=FAST)
    (seen,) = view.observations
    if labels == "given":
        view = replace(view, observations=(replace(seen, labels=y, output_bias=None),), output_layer="")
    found = Tag(Options(iterations=100, lr=0.3, labels=labels))(view, Rng(0))
    assert not isinstance(found, NotApplicable)
    assert text_metrics(found[0].images, x)["token_accuracy"] > 0.8
    assert found[0].labels.tolist() == y.tolist()


def test_the_absolute_part_changes_the_guess() -> None:
    view, _ = text_view(options=FAST)
    guesses = [Tag(Options(iterations=3, alpha=alpha))(view, Rng(0)) for alpha in (0.0, 1.0)]
    assert not torch.equal(guesses[0][0].images, guesses[1][0].images)  # type: ignore[index]


def test_larger_batches_than_allowed_are_not_attacked() -> None:
    found = Tag(Options(max_batch=1))(text_view(2, options=FAST)[0], Rng(0))
    assert isinstance(found, NotApplicable)
    assert "more than max_batch=1" in found.reason


def test_images_are_refused() -> None:
    task = Task(nn.Linear(1, 1), input_shape=(1, 8, 8), n_classes=10, sizes=(1,), schedule=Schedule())
    with pytest.raises(UserError, match=r"attack tag takes texts \[length, words\], inputs have the shape"):
        Tag(Options()).fit(task)
