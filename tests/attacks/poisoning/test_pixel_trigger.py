"""The pixel trigger: the patch, the labels, the scale."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from helpers.poisoning import knowledge, make, round_view, sent
from hypothesis import given, settings
from hypothesis import strategies as st

from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.problem.task import Batch


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 7), st.integers(1, 3))
def test_the_trigger_sets_the_patch_to_one_and_nothing_else(size: int, channels: int) -> None:
    x = torch.rand(5, channels, 8, 8, generator=torch.Generator().manual_seed(size)) * 0.9
    before = x.clone()
    found = make("pixel-trigger", knowledge(), size=size, target=7).trigger(x)
    assert found is not None
    patched, target = found
    assert target == 7
    assert torch.equal(x, before)
    changed = patched != x
    expected = torch.zeros(8, 8, dtype=torch.bool)
    expected[8 - size :, 8 - size :] = True
    assert torch.equal(changed, expected.expand_as(x))
    assert bool((patched[changed] == 1).all())


def test_poisoned_samples_carry_patch_and_target_and_the_others_neither() -> None:
    batch = Batch(torch.zeros(4, 500, 1, 8, 8), torch.full((4, 500), 5))
    poisoned = make("pixel-trigger", knowledge(), share=0.3, target=2).batch(batch, 0, 0, Rng(0))
    marked = poisoned.x[..., -1, -1].flatten(2).squeeze(-1) == 1
    assert torch.equal(marked, poisoned.y == 2)
    assert bool((poisoned.y[~marked] == 5).all())
    assert float(poisoned.x[~marked].sum()) == 0
    assert float(marked.float().mean()) == pytest.approx(0.3, abs=5 * (0.21 / 2000) ** 0.5)
    every = make("pixel-trigger", knowledge(), share=1.0, target=2).batch(batch, 0, 0, Rng(0))
    assert bool((every.y == 2).all())


def test_the_upload_is_scaled() -> None:
    out = sent(make("pixel-trigger", knowledge(), scale=5.0), round_view([[1.0, -2.0]]))
    torch.testing.assert_close(out[:, :2], torch.tensor([[5.0, -10.0]]))


@pytest.mark.parametrize(
    ("options", "allowed"), [({"target": 10}, "0 to 9 with 10 classes"), ({"size": 8}, "1 to 7 on images of 8×8")]
)
def test_a_target_or_patch_that_cannot_be_is_refused(options: dict[str, int], allowed: str) -> None:
    with pytest.raises(UserError, match=allowed):
        make("pixel-trigger", knowledge(), **options)


def test_other_inputs_have_no_place_for_a_patch() -> None:
    on = knowledge()
    flat = replace(on, task=replace(on.task, input_shape=(64,)))
    found = make("pixel-trigger", flat).applies()
    assert found is not None
    assert "no images" in found.reason
    assert make("pixel-trigger", on).applies() is None
