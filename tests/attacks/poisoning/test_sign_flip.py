"""Sign flipping on numbers."""

from __future__ import annotations

import torch
from helpers.poisoning import knowledge, make, round_view, sent


def test_each_colluder_sends_minus_k_times_its_own() -> None:
    out = sent(make("sign-flip", knowledge(), scale=3.0), round_view([[1.0, -2.0], [0.5, 4.0]]))
    torch.testing.assert_close(out[:, :2], torch.tensor([[-3.0, 6.0], [-1.5, -12.0]]))
