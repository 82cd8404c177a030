"""What the harness makes of images that a party knows to be changed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch import Tensor

from fedarena.contracts.inference import GoalName, Inference, Labels, Reconstruction
from fedarena.contracts.observation import Observation
from fedarena.contracts.view import View
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.core.threat import Threat


@dataclass(frozen=True)
class Nothing:
    def __call__(self, x: Tensor, y: Tensor) -> Tensors:
        return {"w": x.sum()[None]}


@dataclass(frozen=True)
class Inverted:
    def __call__(self, x: Tensor) -> Tensor:
        return 1 - x


class Finds(Inference):
    """Finds an image that is too bright in one pixel."""

    def run(self, view: View, rng: Rng, progress: Any) -> Any:
        image = torch.tensor([[[0.25, 7.0]]])
        return [Reconstruction(image[None], torch.zeros(1, dtype=torch.int64), 0.0, 0) for _ in view.observations]


class Names(Inference):
    goal: GoalName = "labels"

    def run(self, view: View, rng: Rng, progress: Any) -> Any:
        return [Labels(torch.zeros(1, dtype=torch.int64)) for _ in view.observations]


def view() -> View:
    plain = Observation(0, clients=(0,), images=1, target={"w": torch.ones(1)}, simulate=Nothing())
    seen = (plain, replace(plain, restore=Inverted()))
    threat = Threat("server", "adaptive")
    return View(threat, reading="upload", input_shape=(1, 1, 2), n_classes=3, observations=seen)


def test_images_of_such_an_observation_alone_are_taken_back() -> None:
    """They are clipped first, as the judge does with others."""
    plain, restored = Finds(None)(view(), Rng(0))  # type: ignore[misc]
    assert plain.images.flatten().tolist() == [0.25, 7.0]
    assert restored.images.flatten().tolist() == pytest.approx([0.75, 0.0])


def test_other_answers_stay_as_they_are() -> None:
    answer = Names(None)(view(), Rng(0))
    assert [int(labels.values) for labels in answer] == [0, 0]  # type: ignore[union-attr]
