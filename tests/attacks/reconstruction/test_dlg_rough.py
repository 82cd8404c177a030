"""DLG where an observation offers a rougher simulator: the search begins with it, and ends with the exact one."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor

from fedarena.attacks.reconstruction.cards.dlg import Options
from fedarena.attacks.reconstruction.dlg import DLG
from fedarena.contracts.inference import Reconstruction
from fedarena.contracts.observation import Observation
from fedarena.contracts.view import View
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.core.threat import Threat


@dataclass(frozen=True)
class Measured:
    """Numbers of the 64 pixels; with ramps, what units that switch along the way would add."""

    a: Tensor
    ramps: float

    def __call__(self, x: Tensor, y: Tensor) -> Tensors:
        seen = self.a @ x.flatten()
        return {"differences": seen + self.ramps * (60 * seen).sin()}


@pytest.fixture(scope="module")
def observation() -> tuple[Observation, Tensor]:
    g = torch.Generator().manual_seed(0)
    a, x = torch.randn(100, 64, generator=g) / 8, torch.rand(1, 1, 8, 8, generator=g)
    exact = Measured(a, 0.004)
    target = exact(x, torch.zeros(1, 2))
    o = Observation(
        0,
        clients=(0,),
        images=1,
        target=target,
        simulate=exact,
        labels=torch.zeros(1, dtype=torch.int64),
        rough=Measured(a, 0.0),
    )
    return o, x


def found(o: Observation, optimizer: str = "lbfgs") -> Reconstruction:
    options = Options(labels="given", restarts=3, optimizer=optimizer, iterations=400, lr=0.01)
    view = View(
        Threat("server", "adaptive"), reading="differences", input_shape=(1, 8, 8), n_classes=2, observations=(o,)
    )
    guess = DLG(options)(view, Rng(0), lambda share, text: None)
    assert isinstance(guess, list)
    return guess[0]


@pytest.mark.parametrize("optimizer", ["lbfgs", "adam"])
def test_the_answer_is_the_exact_simulator_s(observation: tuple[Observation, Tensor], optimizer: str) -> None:
    o, x = observation
    both, rough = found(o, optimizer), found(replace(o, simulate=o.rough or o.simulate, rough=None), optimizer)
    off_both, off_rough = (float((r.images - x).norm()) for r in (both, rough))
    assert both.match < 0.01 * rough.match, "the match is told by the exact simulator, and refined"
    assert off_both < 0.1 * off_rough


def test_the_search_begins_with_the_rough_one(observation: tuple[Observation, Tensor]) -> None:
    """Alone the exact one loses its way; and what either spends is counted."""
    o, x = observation
    steep = replace(o, simulate=Measured(o.simulate.a, 0.03))  # type: ignore[attr-defined]
    steep = replace(steep, target=steep.simulate(x, torch.zeros(1, 2)))
    both, alone = found(steep), found(replace(steep, rough=None))
    assert both.match < 0.5 * alone.match
    first = found(replace(steep, simulate=o.rough or o.simulate, rough=None))
    assert both.evaluations > first.evaluations
