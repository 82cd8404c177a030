"""What an attack of one's own returns for a gradient of plain PyTorch is checked."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from helpers.plain_gradients import dense, digits, gradient_of
from helpers.plugin_files import forgotten

import fedarena as fa
from fedarena.api import invert
from fedarena.contracts.inference import Inference, Reconstruction
from fedarena.core.errors import UserError


class Own(Inference):
    returned: Any = None

    def run(self, view: Any, rng: Any, progress: Any) -> Any:
        return type(self).returned()


def guess(images: Any) -> Reconstruction:
    return Reconstruction(images, torch.tensor([1]), match=0.0, evaluations=0)


IMAGES = torch.zeros(1, 1, 8, 8)
RETURNED: dict[str, tuple[Any, str]] = {
    "nothing": (lambda: None, "None"),
    "tensors": (lambda: [IMAGES], "a list of 1 (a Tensor)"),
    "none-of-them": (lambda: [], "a list of 0"),
    "an-array": (lambda: [guess(IMAGES.numpy())], "a ndarray as images"),
    "rows": (lambda: [guess(IMAGES[0])], "a tensor [1, 8, 8] as images"),
    "two": (lambda: [guess(torch.cat([IMAGES, IMAGES]))], "a tensor [2, 1, 8, 8] as images"),
}


@pytest.mark.parametrize("kind", RETURNED)
def test_what_an_own_attack_returns_is_checked(kind: str) -> None:
    returned, told = RETURNED[kind]
    said = rf"^attack Own.run \(test_own_inversion.py:\d+\) returned {re.escape(told)}, allowed: a list of 1 Recon"
    with forgotten(), pytest.raises(UserError, match=said):
        guessed_by(type("Own", (Own,), {"returned": staticmethod(returned)}))


def test_what_a_function_returns_is_checked() -> None:
    @fa.privacy_attack("own", goal="reconstruction")
    def own(seen: Any, view: Any) -> Any:
        return IMAGES

    said = r"own \(test_own_inversion.py:\d+\) returned a tensor \[1, 1, 8, 8\], allowed: a tuple of images"
    with forgotten(), pytest.raises(UserError, match=said):
        guessed_by(own)


def test_what_an_own_attack_returns_has_no_history() -> None:
    with forgotten():
        made = guessed_by(type("Own", (Own,), {"returned": lambda: [guess(IMAGES.clone().requires_grad_())]}))
    assert not made.images.requires_grad


def guessed_by(attack: Any) -> Reconstruction:
    model, (x, y) = dense(), digits(1)
    return invert(model, gradient_of(model, x, y), input_shape=(1, 8, 8), n_classes=10, attack=attack)
