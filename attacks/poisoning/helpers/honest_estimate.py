"""The colluding clients' estimate of the honest uploads of a round.

An omniscient attacker sees these uploads. Any other attacker takes the uploads that its own clients would have sent by
the protocol as a sample of the same distribution (Baruch et al. 2019, Section 3; Fang et al. 2020, Section 4.3.2).
"""

from __future__ import annotations

import torch
from torch import Tensor

from fedarena.contracts.poisoning import AttackerKnowledge, RoundView
from fedarena.core.tensors import Tensors, row, rows, shaped
from fedarena.core.threat import NotApplicable


def honest_rows(knowledge: AttackerKnowledge, view: RoundView) -> Tensor:
    """Uploads [n, d], n ≥ 1: the honest ones when omniscient and any took part, else the attacker's own."""
    seen = rows(view.honest) if knowledge.knows == "omniscient" else None
    return rows(view.own) if seen is None or not len(seen) else seen


def all_rows(view: RoundView) -> Tensor:
    """Every upload [n, d] of the round that the attacker knows; its own are those of the protocol."""
    parts = [view.own, view.honest] if view.honest else [view.own]
    return torch.cat([rows(part) for part in parts])


def mean_and_deviation(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation √(Σ(x − mean)²/n) of each column of x [n, d]; the deviation of one row is 0."""
    return x.mean(0), x.std(0, correction=0)


def same(vector: Tensor, view: RoundView) -> Tensors:
    """One upload [d], sent by every colluder: [f_t, ...]."""
    return shaped(vector.repeat(view.size, 1), row(view.own, 0))


def needs_two(knowledge: AttackerKnowledge, what: str) -> NotApplicable | None:
    """Why an attack cannot start that needs the deviation of uploads, but has only one client and its own data."""
    if knowledge.knows == "own" and knowledge.corrupted < 2:
        return NotApplicable(
            f"with knows=own {what} is taken over the corrupted clients' own uploads, and there is only 1: needs 2"
        )
    return None
