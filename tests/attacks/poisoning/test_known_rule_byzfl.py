"""Attackers who know the rule send what ByzFL's optimised attacks send."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from helpers.poisoning import knowledge, make, round_view, sent

from fedarena.core.torchvision_import import declare_operators

declare_operators()  # ByzFL imports torchvision
byzfl = pytest.importorskip("byzfl", reason="ByzFL is not installed")

HONEST, F = 9, 3
RULES: dict[str, tuple[Any, list[Any]]] = {
    "trimmed-mean": (byzfl.TrMean(F), []),
    "median": (byzfl.Median(), []),
    # ByzFL's Krum takes the n − f nearest and counts the upload itself among them.
    "krum": (byzfl.Krum(F + 1), []),
    "nnm+trimmed-mean": (byzfl.TrMean(F), [byzfl.NNM(F)]),
}
THEIRS = {"opt-alie": byzfl.Optimal_ALittleIsEnough, "opt-ipm": byzfl.Optimal_InnerProductManipulation}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", THEIRS)
def test_it_sends_what_byzfl_does(rule: str, name: str) -> None:
    aggregator, before = RULES[rule]
    attack = make(name, knowledge("omniscient", clients=12, corrupted=F, rule=rule))
    for seed in range(3):
        noise = torch.randn(HONEST, 8, generator=torch.Generator().manual_seed(seed))
        x = (torch.tensor([1.0, -2.0, 0.5, 0.0, 3.0, 1.0, 1.0, -1.0]) + 0.3 * noise).double()
        ours = sent(attack, round_view(torch.zeros(F, 8).double(), x))
        expected = THEIRS[name](aggregator, pre_agg_list=before, f=F)(x.numpy())
        np.testing.assert_allclose(ours.numpy(), np.tile(expected, (F, 1)), rtol=1e-9, atol=1e-12)
