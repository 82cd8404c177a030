"""The table `inversion/images` on a case of seconds, and its picture."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from fedarena.attacks.reconstruction.cards.inverting_gradients import Options
from fedarena.reproduce.inference import inversion_images
from fedarena.reproduce.inference.inversion_images import PICTURES, Case, as_bytes, as_images, compact, draw, measure
from fedarena.reproduce.machine import Machine

SMALL = Options(iterations=100, restarts=1)


@pytest.mark.parametrize("epochs", [0, 2])
def test_a_case_is_measured_and_drawn(epochs: int, tmp_path: Path) -> None:
    case = Case("digits, single images", dataset="digits", model="lenet-dlg", victims=2, attack=SMALL, epochs=epochs)
    (measured,) = measure(case, Machine(), 0, lambda share, text: None)
    row = {"seed": 0} | measured
    assert row["count"] == 2
    assert row["recovered"] == 1
    assert row["ssim"] > max(0.9, row["nearest_ssim"])
    (shown,), notes = compact([row])
    assert not notes
    assert set(row) - set(shown) == set(PICTURES)
    draw([row], tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 1000


def test_pictures_survive_being_written() -> None:
    images = torch.rand(2, 3, 4, 5, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(as_images(as_bytes(images)), images, atol=0.5 / 255 + 1e-6)


def test_the_cases_are_those_that_were_asked_for() -> None:
    titles = " | ".join(inversion_images.TABLE.pieces)
    for asked in ("MNIST, lenet-dlg, single images, one gradient", "CIFAR-10", "5 local steps", "batches of 4"):
        assert asked in titles
    assert all(case.attack.labels == "inferred" for case in inversion_images.CASES)
