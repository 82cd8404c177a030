"""Signs as messages: what they are of odd numbers, how many bytes they take, and how often a private one is kept."""

from __future__ import annotations

import math

import pytest
import torch

from fedarena.core.rng import Rng
from fedarena.defenses.dp_rsa.signs import kept, random_flips, sign_bytes, signs


def test_every_number_has_a_sign():
    given = torch.tensor([3.0, -0.5, 0.0, -0.0, math.inf, -math.inf, math.nan])
    assert signs({"w": given})["w"].tolist() == [1, -1, 1, 1, 1, -1, -1]


@pytest.mark.parametrize(("clients", "entries", "expected"), [(1, 8, 1), (1, 9, 2), (3, 9, 6), (2, 42310, 10578)])
def test_a_message_takes_one_bit_an_entry(clients, entries, expected):
    assert sign_bytes(clients, entries) == expected


@pytest.mark.parametrize("epsilon", [0.1, 0.4, 3.0])
def test_flipping_is_differentially_private(epsilon):
    """The two inputs give each output with probabilities whose ratio is e^ε at most, and no less."""
    keep = kept(epsilon)
    assert keep / (1 - keep) == pytest.approx(math.exp(epsilon))
    assert kept(math.log(0.6 / 0.4)) == pytest.approx(0.6)  # the released code's probability


def test_signs_are_kept_as_often_as_is_said():
    flips = random_flips(200_000, 0.6, Rng(4).torch())
    assert set(flips.tolist()) == {1.0, -1.0}
    assert float((flips == 1).float().mean()) == pytest.approx(0.6, abs=0.006)  # 5.5 standard errors
