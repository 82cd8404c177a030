"""The law of Gaussian uploads."""

from __future__ import annotations

import pytest
import torch
from helpers.poisoning import knowledge, make, problem

from fedarena.contracts.poisoning import RoundView
from fedarena.core.rng import Rng
from fedarena.core.tensors import rows


@pytest.mark.parametrize(("std", "noise", "expected"), [(None, 0.0, 200.0), (None, 0.7, 0.7), (3.0, 0.7, 3.0)])
def test_standard_deviation_is_the_option_s_or_the_defense_s_or_200(
    std: float | None, noise: float, expected: float
) -> None:
    attack = make("gaussian", knowledge(std=noise), std=std)
    assert attack.strengths == ({"std": expected} if std is None else {})
    s = RoundView(0, participants=10, size=3, down=dict(problem().init), own={}, honest={})
    out, _ = attack.craft(s, {}, Rng(0))
    assert {name: tuple(t.shape) for name, t in out.items()} == {n: (3, *t.shape) for n, t in s.down.items()}
    x = rows(out)
    n = x.numel()
    assert float(x.std()) == pytest.approx(expected, rel=5 / (2 * n) ** 0.5)
    assert abs(float(x.mean())) < 5 * expected / n**0.5


def test_colluders_and_rounds_draw_afresh() -> None:
    attack = make("gaussian", knowledge())
    s = RoundView(0, participants=10, size=3, down=dict(problem().init), own={}, honest={})
    first, second = (rows(attack.craft(s, {}, Rng(0).child(t))[0]) for t in range(2))
    vectors = torch.cat([first, second])
    cosines = torch.corrcoef(vectors) - torch.eye(6)
    assert float(cosines.abs().max()) < 5 / vectors.shape[1] ** 0.5
