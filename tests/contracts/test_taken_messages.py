"""Which messages a node took: against all subsets by hand."""

from __future__ import annotations

import pytest
import torch

from fedarena.contracts.taken_messages import nearest_mean

SENT = {
    0: torch.tensor([0.0, 0.0]),
    1: torch.tensor([4.0, 0.0]),
    2: torch.tensor([0.0, 4.0]),
    9: torch.tensor([8.0, 8.0]),
}
"""What was heard of nodes 0 to 2 of the neighbourhood, and of another one; their mean is (3, 3)."""
AROUND = (0, 1, 2, 3, 4)


@pytest.mark.parametrize(
    ("then", "taken", "weights"),
    [
        ((3.9, 0.2), 1, {1: 1.0}),
        ((2.1, 1.9), 2, {1: 0.5, 2: 0.5}),
        ((3.1, 2.8), 1, {3: 0.5, 4: 0.5}),  # none that was heard
        ((3.4, 1.6), 2, {1: 0.5, 3: 0.25, 4: 0.25}),  # one of two was heard
    ],
)
def test_the_mean_nearest_to_the_next_message_was_taken(
    then: tuple[float, float], taken: int, weights: dict[int, float]
) -> None:
    assert nearest_mean(AROUND, SENT, torch.tensor(then), taken)[0] == weights


def test_what_is_heard_from_outside_is_not_taken() -> None:
    assert nearest_mean((0, 1), SENT, torch.tensor([8.0, 8.0]), 1)[0] == {1: 1.0}
