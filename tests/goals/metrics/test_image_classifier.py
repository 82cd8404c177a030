"""The classifier that says whom a picture shows: good, repeatable, and nobody else's randomness."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from fedarena.core import registry
from fedarena.goals.metrics import image_classifier as evaluator
from fedarena.goals.metrics.image_classifier import architecture, evaluator_of, vary
from fedarena.problem.problem import Problem, build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec


def digits(seed: int = 0) -> Problem:
    model = registry.find("model", "mlp").parse({"widths": "8"})
    return build(
        ProblemSpec(
            "digits", model="mlp", partition="iid", clients=2, model_options=model, schedule=Schedule(rounds=1)
        ),
        seed,
    )


@pytest.fixture(scope="module")
def problem() -> Problem:
    return digits()


@pytest.fixture(scope="module", autouse=True)
def _a_third_of_the_lessons() -> Iterator[None]:
    """They suffice for all that is said here of the classifier, which is forgotten afterwards."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluator, "LESSONS", evaluator.LESSONS // 3)
        evaluator._trained.cache_clear()
        yield
        evaluator._trained.cache_clear()


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trained for a moment, by a function that keeps nothing."""
    monkeypatch.setattr(evaluator, "EPOCHS", 1)
    monkeypatch.setattr(evaluator, "_trained", evaluator._trained.__wrapped__)


def test_it_knows_held_out_digits_and_the_mean_of_each_class(problem: Problem) -> None:
    judge = evaluator_of(problem)
    held_out = problem.x_test.float() / problem.scale
    assert judge.top(held_out, problem.y_test) > 0.96
    means = torch.stack([problem.x[problem.y == k].float().mean(0) / problem.scale for k in range(10)])
    assert judge.top(means, torch.arange(10)) == 1.0
    assert judge.top(held_out, problem.y_test, 5) > judge.top(held_out, problem.y_test)
    assert judge.top(held_out, problem.y_test, 10) == 1.0


def test_it_names_nobody_in_templates_that_nobody_sees(problem: Problem) -> None:
    """Class means less their mean, laid over grey: neighbours of images scaled to one contrast would name them all."""
    means = torch.stack([problem.x[problem.y == k].float().mean(0) / problem.scale for k in range(10)])
    traces = 0.5 + 0.02 * (means - means.mean(0))
    assert evaluator_of(problem).top(traces, torch.arange(10)) <= 0.4


def test_one_picture_for_all_classes_is_right_for_one(problem: Problem) -> None:
    same = torch.full((10, 1, 8, 8), 0.5)
    assert evaluator_of(problem).top(same, torch.arange(10)) == pytest.approx(0.1)


def test_pixels_that_are_no_numbers_are_judged_as_grey(problem: Problem) -> None:
    judge = evaluator_of(problem)
    broken = torch.full((1, 1, 8, 8), torch.nan)
    assert torch.equal(judge.rank(broken), judge.rank(torch.full((1, 1, 8, 8), 0.5)))


def test_the_classifier_is_trained_once_for_each_data_set(problem: Problem) -> None:
    assert evaluator_of(problem) is evaluator_of(digits(seed=1))


def test_training_is_repeatable_and_draws_from_no_global_generator(short: None, problem: Problem) -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    one = evaluator_of(problem)
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(2)
    again = evaluator_of(problem)
    assert one is not again
    for a, b in zip(one.network.state_dict().values(), again.network.state_dict().values(), strict=True):
        assert torch.equal(a, b)


def test_variations_stay_images_and_differ() -> None:
    images = torch.rand(6, 3, 20, 12)
    one, again = (vary(images, torch.Generator().manual_seed(0)) for _ in range(2))
    assert torch.equal(one, again)
    assert one.shape == images.shape
    assert bool((one >= 0).all())
    assert bool((one <= 1).all())
    assert bool(((one - images).abs().flatten(1).amax(1) > 0.05).all())


@pytest.mark.parametrize("shape", [(1, 8, 8), (1, 28, 28), (3, 32, 32), (1, 62, 47), (1, 112, 92)])
def test_it_takes_images_of_any_size(shape: tuple[int, ...]) -> None:
    assert architecture(shape, 7)(torch.rand(2, *shape)).shape == (2, 7)
