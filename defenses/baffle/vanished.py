"""The share of BAFFLE's loss differences that are exactly 0, because rounding makes two near losses equal."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from fedarena.core.tensors import Tensors

VANISHED = "vanished"
"""In verdicts: the share of each client's differences, [clients]."""
WORTH_SAYING = 0.001


def share(differences: Tensor, counts: Tensor) -> Tensor:
    """Of each client's differences [clients, K], of which the first `counts` [clients, 1] are its own, [clients]."""
    own = torch.arange(differences.shape[1], device=differences.device) < counts
    return ((differences == 0) & own).sum(1) / counts.flatten()


def mark(verdicts: Sequence[Tensors], precision: str, whole: bool) -> tuple[str, ...]:
    """What a run must say of it. whole: whether all differences were counted, not one client's first step's alone."""
    lost = [v[VANISHED].mean() for v in verdicts if VANISHED in v]
    vanished = float(torch.stack(lost).mean()) if lost else 0.0
    said = f"{vanished:.1%} of the loss differences were exactly 0 in {precision}"
    if not whole:
        said += " (looked at: one client's first step in each round)"
    return (said,) if vanished >= WORTH_SAYING else ()
