"""Signs of tensors as ±1, their bytes on the wire, and how often a private one is kept."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from fedarena.core.tensors import Tensors


def signs(tensors: Mapping[str, Tensor]) -> Tensors:
    """1 for entries that are 0 or more, −1 for others, not-a-numbers among them; the derivative is 0."""
    return {name: torch.sign(t.nan_to_num(nan=-1.0)) + (t == 0).to(t) for name, t in tensors.items()}


def sign_bytes(clients: int, entries: int) -> int:
    """Bytes of the clients' messages of so many signs: one bit each, whole bytes a message."""
    return clients * -(-entries // 8)


def kept(epsilon: float) -> float:
    """The probability e^ε/(1 + e^ε) with which randomised response keeps a sign."""
    return 1 / (1 + math.exp(-epsilon))


def random_flips(entries: int, keep: float, generator: torch.Generator) -> Tensor:
    """[entries], 1 with probability `keep` and −1 otherwise."""
    return 1.0 - 2.0 * (torch.rand(entries, generator=generator) >= keep).float()
