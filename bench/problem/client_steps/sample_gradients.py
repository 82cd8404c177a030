"""The gradients of single samples' losses, in parts, with the operations that bounded sums need.

For a dense layer with inputs h, and q = ∂f_j/∂z at its outputs, no gradient is formed ("ghost norms", Goodfellow 2015):

    ‖∇f_j‖² = ‖q‖²(‖h‖² + 1)      ⟨∇f_j, m⟩ = qᵀ(M h + μ)      Σ_j a_j ∇f_j = Σ_j (a_j q) hᵀ

where M and μ are m's entries for the layer's weight and bias.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from fedarena.core.tensors import Tensors


@dataclass(frozen=True)
class Crowd:
    """The owners of samples, which lie client after client.

    Attributes:
        owner: each sample's client [n]. clients: the distinct clients [k]. counts: how many samples each has.
        place: for each sample, the position of its client among these, [n].
    """

    owner: Tensor
    clients: Tensor
    counts: list[int]
    place: Tensor


class Part(ABC):
    """The samples' gradients by some of the parameters."""

    @abstractmethod
    def squared(self) -> Tensor:
        """‖∇f_j‖² [n]."""

    @abstractmethod
    def inner(self, m: Tensors, crowd: Crowd) -> Tensor:
        """⟨∇f_j, m⟩ [n], m the vectors of all clients, by name."""

    @abstractmethod
    def add(self, weights: Tensor, crowd: Crowd, out: Tensors) -> None:
        """Adds Σ_j weights_j ∇f_j to those of all clients, by name."""


@dataclass(frozen=True)
class Dense(Part):
    """The gradients of a dense layer, by its inputs h [n, in], and q [n, out]."""

    weight: str
    bias: str | None
    h: Tensor
    q: Tensor

    def squared(self) -> Tensor:
        return self.q.square().sum(1) * (self.h.square().sum(1) + (1.0 if self.bias else 0.0))

    def inner(self, m: Tensors, crowd: Crowd) -> Tensor:
        own = zip(crowd.clients.tolist(), self.h.split(crowd.counts), strict=True)
        seen = torch.cat([h @ m[self.weight][client].T for client, h in own])
        return (self.q * (seen + m[self.bias][crowd.owner] if self.bias else seen)).sum(1)

    def add(self, weights: Tensor, crowd: Crowd, out: Tensors) -> None:
        weighted = self.q * weights.unsqueeze(1)
        each = zip(crowd.clients.tolist(), weighted.split(crowd.counts), self.h.split(crowd.counts), strict=True)
        for client, q, h in each:
            out[self.weight][client].addmm_(q.T, h)
        if self.bias:
            out[self.bias].index_add_(0, crowd.owner, weighted)


@dataclass(frozen=True)
class Formed(Part):
    """The gradients of any layer, formed [n, entries], by name."""

    gradients: Mapping[str, Tensor]

    def squared(self) -> Tensor:
        norms = [torch.linalg.vector_norm(g, dim=1).square() for g in self.gradients.values()]
        return torch.stack(norms).sum(0)

    def inner(self, m: Tensors, crowd: Crowd) -> Tensor:
        # Products with the vectors of all clients, of which each sample's own is picked.
        each = [g @ m[name][crowd.clients].flatten(1).T for name, g in self.gradients.items()]
        return torch.stack(each).sum(0).gather(1, crowd.place.unsqueeze(1)).squeeze(1)

    def add(self, weights: Tensor, crowd: Crowd, out: Tensors) -> None:
        share = weights.new_zeros(len(crowd.clients), len(weights))
        share[crowd.place, torch.arange(len(weights), device=weights.device)] = weights
        for name, g in self.gradients.items():
            into = out[name]
            into.index_add_(0, crowd.clients, (share @ g).reshape(-1, *into.shape[1:]))
