"""Texts read off the gradients of attention: exactly below the width, and as best guesses beyond it and under noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from helpers.text_views import text_view
from torch import Tensor

from fedarena.attacks.reconstruction.cards.dager import Options
from fedarena.attacks.reconstruction.dager import Dager
from fedarena.attacks.reconstruction.helpers.attention_inputs import known_model, span_of
from fedarena.contracts.inference import Reconstruction
from fedarena.contracts.view import View
from fedarena.core.rng import Rng
from fedarena.core.threat import NotApplicable
from fedarena.goals.metrics.text_similarity import text_metrics

SMALL = {"width": "64"}


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def guess(view: View) -> Reconstruction:
    found = Dager(Options())(view, Rng(0))
    assert not isinstance(found, NotApplicable), found.reason
    return found[0]


def same(found: Reconstruction, x: Tensor, y: Tensor) -> bool:
    """Whether all texts of a batch came back, each with its label."""

    def texts(x: Tensor, y: Tensor) -> list[tuple[list[int], int]]:
        return sorted(zip(x.argmax(-1).tolist(), y.tolist(), strict=True))

    return texts(found.images, found.labels) == texts(x, y)


def reason(view: View) -> str:
    found = Dager(Options())(view, Rng(0))
    assert isinstance(found, NotApplicable)
    return found.reason


@pytest.mark.parametrize(
    ("batch", "steps", "options"),
    [(1, 0, SMALL), (4, 5, SMALL), (16, 0, {}), (1, 2, SMALL | {"lora": "4"}), (4, 2, {"lora": "16"})],
)
def test_every_text_comes_back_with_its_label(batch: int, steps: int, options: Mapping[str, str]) -> None:
    view, [(x, y)] = text_view(batch, steps=steps, options=options)
    found = guess(view)
    assert same(found, x, y)
    assert found.match < 1e-6


def test_the_rows_of_a_gradient_span_what_entered_the_layer() -> None:
    view, [(x, _)] = text_view(4, options=SMALL)
    (seen,) = view.observations
    known = known_model(seen)
    assert not isinstance(known, str)
    for layer in (0, 1):
        span = span_of(known.seen_of(seen.target, layer), 0.0, 1e-7)
        assert not isinstance(span, str)
        assert span.distance(known.inputs(layer, x)).max() < 1e-4
        assert span.distance(known.inputs(layer, x.roll(1, 2))).median() > 1e-2


def test_without_adapters_of_enough_rank_texts_stay_hidden() -> None:
    view, [(x, y)] = text_view(4, steps=2, options=SMALL | {"lora": "4"})
    assert not same(guess(view), x, y)


def test_more_beginnings_than_dimensions_leave_a_guess_that_is_wrong() -> None:
    view, [(x, y)] = text_view(8, options={"width": "32"})
    found = guess(view)
    assert found.images.shape == x.shape
    assert not same(found, x, y)


@pytest.mark.parametrize("told", [True, False])
def test_faint_noise_spares_a_text_and_loud_noise_does_not(told: bool) -> None:
    words = []
    for noise in (1e-6, 1.0):
        view, [(x, _)] = text_view(noise=noise, told=told, options=SMALL)
        words.append(text_metrics(guess(view).images, x)["token_accuracy"])
    assert words[0] == 1.0 > words[1]


def test_adapters_show_nothing_in_the_first_round() -> None:
    assert reason(text_view(options=SMALL | {"lora": "4"})[0]) == (
        "the gradient of q, k and v is 0, as that of adapters in the first round, in which B is 0"
    )


@pytest.mark.parametrize(
    ("options", "told"), [({"causal": "False"}, "the attention is not causal"), ({"layers": "1"}, "no two layers")]
)
def test_other_transformers_are_not_attacked(options: Mapping[str, str], told: str) -> None:
    assert told in reason(text_view(options=SMALL | options)[0])


def test_models_without_attention_are_not_attacked() -> None:
    assert "no two layers of attention" in reason(text_view(model="mlp")[0])


def test_a_text_that_stands_in_a_batch_twice_is_named_twice() -> None:
    view, [(x, y)] = text_view(2, options=SMALL)
    (seen,) = view.observations
    x, y = x[:1].expand_as(x), y[:1].expand_as(y)
    twice = replace(seen, target=seen.simulate(x, F.one_hot(y, 6).float()))
    assert same(guess(replace(view, observations=(twice,))), x, y)
