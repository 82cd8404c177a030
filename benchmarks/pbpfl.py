"""PBPFL's client, which computes three gradients, against FedAvg's, which computes one: forward and backward together.

At most 2.2 times this library's FedAvg on residual networks; the paper's Table 3 has 2.50. In the arithmetic of
convolutions alone it is 7/3: a forward pass and three times the two parts of a backward one, against one and once. What
is below that is won by the layout, channels last: without a bar stands the same FedAvg step written in plain PyTorch
with channels last. `bench reproduce pbpfl/table3` has the server and other sizes.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import inf

from side_by_side import Row, alternate, costlier, main

from fedarena.reproduce.pbpfl.common import FEDAVG, MASKED
from fedarena.reproduce.pbpfl.table3 import NETWORKS, Round

BARS = {"mlp 51-50-50-1, batch 512": None, "ResNet-20, 32×32": 2.2, "ResNet-56, 32×32": 2.2}
"""Piece of Table 3 → the bar."""
PLAIN = "fedavg in plain PyTorch"


def measure(repetitions: int) -> list[Row]:
    """Two rows a network: against FedAvg, and against FedAvg with channels last where there are channels."""
    rows = []
    for network in (n for n in NETWORKS if n.title in BARS):
        step = Round(network, 0)
        candidates = {name: partial(step.client, name) for name in (MASKED, FEDAVG)} | {PLAIN: step.plain}
        spent = alternate(candidates, repetitions)
        bar = BARS[network.title]
        against = costlier(network.title, MASKED, FEDAVG, spent, bar or inf)
        rows.append(against if bar else without_bar(against))
        if len(network.shape) == 3:
            rows.append(without_bar(costlier(network.title, MASKED, PLAIN, spent, inf)))
    return rows


def without_bar(row: Row) -> Row:
    """A row that is only shown."""
    return replace(row, bar="", met=None)


if __name__ == "__main__":
    main(__doc__, measure)
