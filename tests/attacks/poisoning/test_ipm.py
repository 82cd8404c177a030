"""Inner product manipulation on numbers."""

from __future__ import annotations

import torch
from helpers.poisoning import knowledge, make, round_view, sent

OWN, HONEST = [[1.0, 0.0], [3.0, 2.0]], [[10.0, 4.0], [20.0, 6.0], [30.0, -1.0]]


def test_all_send_minus_epsilon_times_the_mean_of_what_they_know() -> None:
    seen = sent(make("ipm", knowledge("omniscient"), epsilon=0.5), round_view(OWN, HONEST))
    torch.testing.assert_close(seen[:, :2], torch.tensor([[-10.0, -1.5]] * 2))
    blind = sent(make("ipm", knowledge("own"), epsilon=0.5), round_view(OWN))
    torch.testing.assert_close(blind[:, :2], torch.tensor([[-1.0, -0.5]] * 2))
