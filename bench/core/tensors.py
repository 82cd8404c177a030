"""Named tensors: model parameters and whatever crosses a wire."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

Tensors = dict[str, Tensor]
"""Name → tensor. Stacked over clients, every tensor has a leading client axis."""


def nbytes(tensors: Mapping[str, Tensor]) -> int:
    """Bytes that these tensors take on a wire."""
    return sum(t.numel() * t.element_size() for t in tensors.values())


def stack(rows: Sequence[Mapping[str, Tensor]]) -> Tensors:
    """Per-client tensors → one leading client axis."""
    return {name: torch.stack([row[name] for row in rows]) for name in rows[0]}


def row(stacked: Mapping[str, Tensor], index: int) -> Tensors:
    """One client's tensors."""
    return {name: t[index] for name, t in stacked.items()}


def weighted_mean(stacked: Mapping[str, Tensor], weights: Tensor) -> Tensors:
    """Σ_c w_c t_c / Σ_c w_c over the leading client axis; `weights` has shape [clients]."""
    share = weights / weights.sum()
    return {name: torch.tensordot(share.to(t), t, dims=1) for name, t in stacked.items()}


def combine(a: float, x: Mapping[str, Tensor], b: float, y: Mapping[str, Tensor]) -> Tensors:
    """a·x + b·y, name by name."""
    return {name: a * t + b * y[name] for name, t in x.items()}


def scale(a: float, x: Mapping[str, Tensor]) -> Tensors:
    """a·x."""
    return {name: a * t for name, t in x.items()}


def flatten(tensors: Mapping[str, Tensor]) -> Tensor:
    """One vector, in the order of the mapping."""
    return torch.cat([t.reshape(-1) for t in tensors.values()])


def finite(tensors: Mapping[str, Tensor]) -> bool:
    """Whether every value is finite."""
    return all(bool(torch.isfinite(t).all()) for t in tensors.values())


def to(tensors: Mapping[str, Tensor], device: torch.device | str) -> Tensors:
    """The same tensors on another device."""
    return {name: t.to(device) for name, t in tensors.items()}


def same_names(tensors: Mapping[str, Tensor], names: Sequence[str]) -> Tensors:
    """The subset with these names, in their order."""
    return {name: tensors[name] for name in names}


def rows(stacked: Mapping[str, Tensor]) -> Tensor:
    """Stacked tensors → one row per client, [clients, d], in the order of the mapping."""
    return torch.cat([t.flatten(1) for t in stacked.values()], dim=1)


def shaped(flat: Tensor, like: Mapping[str, Tensor]) -> Tensors:
    """[..., d] → tensors of `like`'s names and shapes with the leading axes of `flat`; undoes `flatten` and `rows`.

    Args:
        like: unstacked tensors.
    """
    parts = flat.split([t.numel() for t in like.values()], dim=-1)
    return {name: part.reshape(*flat.shape[:-1], *t.shape) for part, (name, t) in zip(parts, like.items(), strict=True)}
