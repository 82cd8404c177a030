"""A small real federation, and rounds of it as corrupted clients see them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from fedarena.contracts.poisoning import AttackerKnowledge, Poisoning, RoundView
from fedarena.core import registry
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, rows
from fedarena.core.threat import Knowledge
from fedarena.federation import compose
from fedarena.records.schema import Record
from fedarena.testing import federations

SHAPES = {"w": (2, 3), "b": (2,)}
"""An upload of eight numbers."""
problem = federations.poisoned_problem


def knowledge(knows: Knowledge = "own", *numbers: int | float, rule: str = "", **more: Any) -> AttackerKnowledge:
    """What the corrupted clients know (`fedarena.testing.federations.knowledge`), with a rule by name."""
    made = compose.make_rule(compose.parse_defense(rule).rest) if rule else None
    return federations.knowledge(knows, *numbers, rule=made, **more)  # type: ignore[arg-type]


def make(name: str, on: AttackerKnowledge, **options: Any) -> Poisoning:
    """An attack by name; options as objects."""
    card = registry.find("attack", name)
    made: Poisoning = card.load()(card.options(**options), on)
    return made


def uploads(flat: Tensor | list[list[float]]) -> Tensors:
    """[n, d ≤ 8] → uploads named and shaped as SHAPES, missing numbers 0."""
    x = torch.as_tensor(flat)
    x = torch.cat([x, x.new_zeros(len(x), 8 - x.shape[1])], 1)
    return {"w": x[:, :6].reshape(-1, 2, 3).clone(), "b": x[:, 6:].clone()}


def round_view(own: Any, honest: Any = None, round: int = 0, clients: tuple[int, ...] | None = None) -> RoundView:
    """A round with these uploads, given as rows."""
    mine = uploads(own)
    theirs = {} if honest is None else uploads(honest)
    seen = 0 if honest is None else len(theirs["b"])
    size = len(mine["b"])
    return RoundView(
        round=round,
        participants=size + (seen or 7),
        size=size,
        down={name: torch.zeros(shape) for name, shape in SHAPES.items()},
        own=mine,
        honest=theirs,
        honest_clients=clients if clients is not None else tuple(range(seen)),
        clients=tuple(range(seen, seen + size)),
    )


def sent(attack: Poisoning, s: RoundView, seed: int = 0, memory: Tensors | None = None) -> Tensor:
    """What the colluders send, as rows [f, 8]."""
    return rows(attack.craft(s, memory or {}, Rng(seed))[0])


def left(record: Record) -> float:
    """What poisoning leaves in the end of the clean run's accuracy above chance, or of what a trigger missed."""
    utility, metrics = record["utility"], record["metrics"]
    chance, base = utility["chance"], metrics.get("clean_success_rate", 0.0)
    kept = (metrics["accuracy"] - chance) / (utility["clean_accuracy"] - chance)
    missed = (1 - metrics.get("attack_success_rate", base)) / (1 - base)
    return min(1.0, max(0.0, min(kept, missed)))
