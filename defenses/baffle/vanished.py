"""The share of BAFFLE's loss differences that are exactly 0, because rounding makes two near losses equal."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from fedarena.core.tensors import Tensors

VANISHED = "vanished"
"""The name in verdicts of the share of vanished differences of each client, [clients]."""
WORTH_SAYING = 0.001


def share(differences: Tensor, counts: Tensor) -> Tensor:
    """The share of zeros [clients] among each client's first `counts` [clients, 1] differences [clients, K]."""
    own = torch.arange(differences.shape[1], device=differences.device) < counts
    return ((differences == 0) & own).sum(1) / counts.flatten()


def mark(verdicts: Sequence[Tensors], precision: str, whole: bool) -> tuple[str, ...]:
    """The warning of a run. whole: whether all differences were counted, or only those of one client's first step."""
    lost = [v[VANISHED].mean() for v in verdicts if VANISHED in v]
    vanished = float(torch.stack(lost).mean()) if lost else 0.0
    said = f"{vanished:.1%} of the loss differences were exactly 0 in {precision}"
    if not whole:
        said += " (looked at: one client's first step in each round)"
    return (said,) if vanished >= WORTH_SAYING else ()
