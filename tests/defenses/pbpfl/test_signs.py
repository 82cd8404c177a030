"""PBPFL: last layers whose features may cancel in α are refused, others are not."""

from __future__ import annotations

import pytest
import torch
from helpers.pbpfl import make
from torch import nn

from fedarena.core.errors import UserError


class Signs(nn.Module):
    """Hidden units, and what is made of them before the last layer."""

    def __init__(self, head):
        super().__init__()
        self.hidden, self.other = nn.Linear(12, 8), nn.Linear(12, 8)
        self.out, self.head = nn.Linear(16, 3), head

    def forward(self, x):
        return self.out(self.head(torch.relu(self.hidden(x)), self.other(x)))


@pytest.mark.parametrize(
    "head",
    [
        lambda h, g: torch.cat([h, -h], 1) + 0 * torch.cat([g, g], 1),
        lambda h, g: torch.cat([h, g - h], 1),
        lambda h, g: torch.cat([h + g, h * -1.0], 1),
        lambda h, g: torch.cat([h + g, h / -2], 1).clone(),
        lambda h, g: torch.cat([g, torch.nn.functional.leaky_relu(h, -1.0)], 1),
    ],
)
def test_features_whose_sum_may_cancel_are_refused(head):
    with pytest.raises(UserError, match="layer 'out' reads units with their signs changed, allowed: as they come"):
        make(Signs(head))


@pytest.mark.parametrize(
    "head",
    [
        lambda h, g: torch.cat([h, torch.relu(-g)], 1),
        lambda h, g: torch.cat([h, torch.relu(g - h)], 1),
        lambda h, g: torch.cat([2.0 * h, torch.nn.functional.leaky_relu(g, 0.2)], 1),
        lambda h, g: torch.cat([h, g], 1),
    ],
)
def test_features_of_any_sign_that_no_operation_turned_are_not(head):
    make(Signs(head))
