"""By which weights a node mixed, as far as its neighbours can tell from what crosses in clear.

Without a rule the weights are the graph's, w_vj. Of a rule that takes one message, such as Krum, they are 1 for this
message and 0 for all others. Biases and the output layer cross in clear, and a step is short beside the distance of
two models: v's next message is nearest to the one that was taken. Where it is nearer to the mean by w_vj, none of those
that were heard was taken, and w_vj stand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import torch
from torch import Tensor

from fedarena.contracts.peer_readings import heard
from fedarena.contracts.transcript import Seen
from fedarena.core.tensors import Tensors, flatten

Weights = Mapping[int, float]
"""Node → the weight of its message; a node that is not named has none."""


def told_weights(
    usual: Weights, stretch: Sequence[Seen], node: int, clear: Callable[[Tensors], Tensors]
) -> list[Weights]:
    """Of a node that takes one message, in each round of a stretch; in the last, which nothing follows, `usual`.

    Args:
        usual: w_vj of the node's neighbourhood. clear: what of a message crosses in clear.
    """
    sent = [{j: flatten(clear(message)).double() for j, message in heard(now).items()} for now in stretch]
    return [*(_told(usual, before, after[node]) for before, after in pairwise(sent)), usual]


def _told(usual: Weights, sent: Mapping[int, Tensor], then: Tensor) -> Weights:
    """Of one round; see the module's docstring."""
    any_node = torch.stack(list(sent.values())).mean(0)
    mean = torch.stack([w * sent.get(j, any_node) for j, w in usual.items()]).sum(0)
    away = {j: float((sent[j] - then).norm()) for j in usual if j in sent}
    taken = min(away, key=away.__getitem__)
    return {taken: 1.0} if away[taken] < float((mean - then).norm()) else usual
