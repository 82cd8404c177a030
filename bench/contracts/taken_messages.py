"""Which messages a node took, of a rule that returns the mean of few, such as Krum: its next message tells.

A step is short beside the distance of two models. So v's next message h_v is nearest to the mean of those that v took.
Of m that were taken a party may have heard some: the rest of the weight lies on those that it did not hear, alike, and
the mean of all that it heard stands for each of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import combinations

import torch
from torch import Tensor

FEW = 2
"""The most messages that are told. The more there are, the more of a step lies between their means."""


def are_told(taken: int) -> bool:
    """Whether so many messages can be told; 0: the rule weighs otherwise."""
    return 0 < taken <= FEW


def nearest_mean(
    around: Collection[int], sent: Mapping[int, Tensor], then: Tensor, taken: int
) -> tuple[dict[int, float], Tensor]:
    """The weights of the messages of a neighbourhood that lead nearest to the node's next message, and their mean.

    Args:
        around: the neighbourhood, the node included. sent: what was heard, flat. then: the node's next message, flat.
        taken: how many messages it took.
    """
    any_node = torch.stack(list(sent.values())).mean(0)

    def mean(weights: Mapping[int, float]) -> Tensor:
        return torch.stack([w * sent.get(j, any_node) for j, w in weights.items()]).sum(0)

    means = ((weights, mean(weights)) for weights in _possible(around, sent, taken))
    return min(means, key=lambda found: float((found[1] - then).norm()))


def _possible(around: Collection[int], sent: Collection[int], taken: int) -> Iterator[dict[int, float]]:
    """All weights that a party cannot tell from others before it hears the next message."""
    heard, unheard = [j for j in around if j in sent], [j for j in around if j not in sent]
    for known in range(max(0, taken - len(unheard)), min(taken, len(heard)) + 1):
        rest = {j: (taken - known) / taken / len(unheard) for j in unheard} if known < taken else {}
        for some in combinations(heard, known):
            yield {**dict.fromkeys(some, 1 / taken), **rest}
