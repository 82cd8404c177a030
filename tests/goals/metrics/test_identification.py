"""Identification: who could have been the victim, and when a guess says which one was."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from helpers.victims import StoredSamples
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fedarena.core.rng import Rng
from fedarena.goals.metrics.identification import (
    Decoys,
    Owned,
    Truth,
    _in_batch,
    chance_in_batches,
    draw_decoys,
    identified,
    identified_in_batches,
)

NONE = torch.empty(0, dtype=torch.int64)
NOTHING = Owned(NONE, NONE)


def stored(n: int = 120, held: int = 60, classes: int = 3, scale: float = 1.0) -> StoredSamples:
    x = torch.rand(n + held, 1, 4, 4, generator=Rng(1).torch())
    y = torch.arange(n + held) % classes
    return StoredSamples(x[:n] * scale, y[:n], x[n:] * scale, y[n:], scale)


def victims(data: StoredSamples, *indices: int) -> list[tuple[Tensor, Tensor]]:
    return [(data.x[[i]] / data.scale, data.y[[i]]) for i in indices]


def together(truths: list[tuple[Tensor, Tensor]]) -> Tensor:
    return torch.cat([x for x, _ in truths])


@given(index=st.integers(0, 119), classes=st.integers(1, 5), n=st.integers(1, 40))
@settings(max_examples=30, deadline=None)
def test_a_victim_identifies_itself_and_a_decoy_does_not_identify_it(index: int, classes: int, n: int) -> None:
    data = stored(classes=classes)
    truths = victims(data, index)
    decoys = draw_decoys(truths, data, NOTHING, Rng(index), n)
    x = together(truths)
    assert identified(x, x, decoys).all()
    assert not any(identified(d[None], x, decoys).any() for d in decoys.images[0])


def test_decoys_are_real_other_samples_of_the_victim_s_class() -> None:
    data = stored()
    decoys = draw_decoys(victims(data, 7, 8), data, NOTHING, Rng(0), 30)
    every = torch.cat([data.x, data.x_test])
    labels = torch.cat([data.y, data.y_test])
    for index, images in zip((7, 8), decoys.images, strict=True):
        places = [int((every == d).flatten(1).all(1).nonzero()) for d in images]
        assert len(set(places)) == 30
        assert index not in places
        assert {int(labels[i]) for i in places} == {int(data.y[index])}
    assert decoys.same_class == 1
    assert decoys.chance == pytest.approx(1 / 31)


def test_training_and_held_out_samples_are_drawn_alike() -> None:
    data = stored(n=120, held=60, classes=1)
    held = 0
    for i in range(60):
        images = draw_decoys(victims(data, i), data, NOTHING, Rng(i), 9).images[0]
        held += sum(bool((data.x_test == d).flatten(1).all(1).any()) for d in images)
    assert held == pytest.approx(60 * 9 / 3, abs=4 * math.sqrt(60 * 9 * 2 / 9))


def test_what_the_attacker_owns_is_no_decoy() -> None:
    data = stored(classes=1)
    owned = Owned(torch.arange(0, 100), torch.arange(10, 60))
    images = draw_decoys(victims(data, 110), data, owned, Rng(0), 99).images[0]
    assert len(images) == 20 + 10 - 1
    assert not any((data.x[:100] == d).flatten(1).all(1).any() for d in images)
    assert not any((data.x_test[10:] == d).flatten(1).all(1).any() for d in images)


def test_exact_copies_of_the_victim_are_no_decoys() -> None:
    data = stored(classes=1)
    data.x[1:50] = data.x[0]
    truths = victims(data, 0)
    decoys = draw_decoys(truths, data, NOTHING, Rng(0))
    assert len(decoys.images[0]) == 99
    assert identified(together(truths), together(truths), decoys).all()


def test_a_small_class_is_filled_up_with_others_and_said_to_be() -> None:
    data = stored(n=40, held=20, classes=10)
    decoys = draw_decoys(victims(data, 3), data, NOTHING, Rng(0), 25)
    assert len(decoys.images[0]) == 25
    assert decoys.same_class == pytest.approx(5 / 25)


def test_numbers_as_labels_form_no_classes() -> None:
    data = stored(classes=2)
    numbers = StoredSamples(data.x, data.y / 10, data.x_test, data.y_test / 10)
    decoys = draw_decoys(victims(numbers, 4), numbers, NOTHING, Rng(0), 50)
    assert len(decoys.images[0]) == 50
    assert decoys.same_class == 1


def test_chance_is_among_the_class_where_the_class_has_few() -> None:
    """Ten images of a person: who knows the person has ten to choose from, whatever else fills up."""
    data = stored(n=120, held=60, classes=18)
    decoys = draw_decoys(victims(data, 3, 50), data, NOTHING, Rng(0), 30)
    assert [len(images) for images in decoys.images] == [30, 30]
    assert decoys.of_class == (9, 9)
    assert decoys.chance == pytest.approx(1 / 10)
    many = draw_decoys(victims(data, 3), data, NOTHING, Rng(0), 18)  # half of them are of the class
    assert many.chance == pytest.approx(1 / 19)


def test_a_guess_without_an_upload_identifies_by_chance() -> None:
    """The class's mean, the nearest of the other samples and noise, each on every training sample as victim."""
    data = stored(n=600, held=200, classes=2)
    truths = victims(data, *range(600))
    decoys = draw_decoys(truths, data, NOTHING, Rng(3), 19)
    x = together(truths)
    means = torch.stack([data.x[data.y == c].mean(0) for c in range(2)])[data.y]
    noise = torch.rand(x.shape, generator=Rng(4).torch())
    others = data.x_test[torch.arange(600) % 200]
    for guess in (means, noise, others):
        share = float(identified(guess, x, decoys).double().mean())
        assert share == pytest.approx(1 / 20, abs=4 * math.sqrt(1 / 20 * 19 / 20 / 600))


def batches(data: StoredSamples, n: int, count: int) -> list[Truth]:
    """Observations of n victims each."""
    order = torch.randperm(len(data.y), generator=Rng(7).torch())[: n * count].split(n)
    return [(data.x[index].float() / data.scale, data.y[index]) for index in order]


@pytest.mark.parametrize(("n", "guessed"), [(16, 16), (48, 48), (16, 5), (16, 30)])
def test_to_be_assigned_to_a_victim_of_a_batch_is_no_help(n: int, guessed: int) -> None:
    """Other samples of the same distribution, which know nothing of the batch."""
    data = stored(n=960, held=200, classes=2)
    truths = batches(data, n, 960 // n)
    decoys = draw_decoys(truths, data, NOTHING, Rng(3), 19)
    found, named = 0, 0
    for seed in range(3):
        draw = Rng(seed).torch()
        guesses = [torch.rand((guessed, *data.x.shape[1:]), generator=draw) for _ in truths]
        found += int(identified_in_batches(guesses, [x for x, _ in truths], decoys).sum())
        named += len(truths) * min(n, guessed)
    chance = chance_in_batches([guessed] * len(truths), [n] * len(truths), decoys)
    assert chance == pytest.approx(max(n / guessed, 1) / 20)
    assert found / named == pytest.approx(chance, abs=4 * math.sqrt(chance * (1 - chance) / named))


@pytest.mark.parametrize("guessed", [16, 7, 20])
def test_the_samples_of_a_batch_identify_themselves_in_any_order(guessed: int) -> None:
    data = stored(n=320, held=100, classes=2)
    truths = batches(data, 16, 3)
    decoys = draw_decoys(truths, data, NOTHING, Rng(3), 19)
    guesses = [torch.cat([x.flip(0), torch.rand_like(x)])[:guessed] for x, _ in truths]
    found = identified_in_batches(guesses, [x for x, _ in truths], decoys).reshape(3, 16).flip(1)
    assert found.equal(torch.arange(16).lt(guessed).expand(3, 16))


def test_a_batch_of_one_is_judged_by_the_plain_rule() -> None:
    data = stored(n=100, held=50, classes=2)
    truths = batches(data, 1, 40)
    decoys = draw_decoys(truths, data, NOTHING, Rng(3), 9)
    guesses = [0.7 * x + 0.3 * torch.rand(x.shape, generator=Rng(i).torch()) for i, (x, _) in enumerate(truths)]
    found = identified_in_batches(guesses, [x for x, _ in truths], decoys)
    assert found.equal(identified(torch.cat(guesses), torch.cat([x for x, _ in truths]), decoys))
    for i, (guess, (x, _)) in enumerate(zip(guesses, truths, strict=True)):
        own = Decoys(decoys.images[i : i + 1], decoys.of_class[i : i + 1], decoys.scale)
        assert _in_batch(guess.double().flatten(1), x.double().flatten(1), own).equal(found[i : i + 1])


@pytest.mark.parametrize("scale", [1.0, 255.0])
def test_faint_noise_hides_nobody_and_the_scale_of_storage_does_not_matter(scale: float) -> None:
    data = stored(n=300, held=100, classes=1, scale=scale)
    truths = victims(data, *range(100))
    x = together(truths)
    noisy = x + 10 ** (-30 / 20) * torch.randn(x.shape, generator=Rng(5).torch())
    assert identified(noisy, x, draw_decoys(truths, data, NOTHING, Rng(0))).all()


def test_the_definition_holds_pixel_by_pixel() -> None:
    data = stored()
    truths = victims(data, *range(12))
    decoys, x = draw_decoys(truths, data, NOTHING, Rng(2), 6), together(truths)
    guesses = 0.6 * x + 0.4 * torch.rand(x.shape, generator=Rng(6).torch())

    def distance(a: Tensor, b: Tensor) -> float:
        pixels = itertools.product(range(4), range(4))
        return sum((float(a[0, r, c].double()) - float(b[0, r, c].double())) ** 2 for r, c in pixels)

    for g, v, others, fast in zip(guesses, x, decoys.images, identified(guesses, x, decoys).tolist(), strict=True):
        assert fast == (distance(g, v) < min(distance(g, d) for d in others))


def test_guesses_that_are_not_finite_identify_nobody_for_certain() -> None:
    data = stored(classes=1)
    truths = victims(data, *range(50))
    x = together(truths)
    share = identified(torch.full_like(x, math.nan), x, draw_decoys(truths, data, NOTHING, Rng(0))).double().mean()
    assert float(share) < 0.2


def test_other_numbers_of_guesses_are_refused() -> None:
    with pytest.raises(ValueError, match="2 guesses of 3 victims"):
        identified(torch.zeros(2, 1, 4, 4), torch.zeros(3, 1, 4, 4), Decoys((), (), 1.0))
