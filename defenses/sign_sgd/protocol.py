"""signSGD (Bernstein et al. 2018, Algorithm 1): clients send one bit an entry, and a length for each tensor.

T(g) = (‖g‖₁/d)·sgn(g)   for each tensor of d entries (Karimireddy et al. 2019, Section 4); sgn(0) = 1

T has no derivative of use. A party that goes through T takes that of g in its place (the straight-through estimator,
Bengio, Léonard & Courville 2013): where signs differ, it learns in which direction g has to move.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from fedarena.core.tensors import Tensors
from fedarena.defenses.dp_rsa.signs import sign_bytes
from fedarena.defenses.fedavg.changed_upload import ChangedUpload
from fedarena.problem.task import Batch

LENGTH_BYTES = 4
"""Bytes of a tensor's length."""


class SignSGD(ChangedUpload):
    """The protocol; see the module's docstring."""

    def change(self, up: Tensors, down: Tensors, batch: Batch, noise: Tensors) -> Tensors:
        return {name: scaled_signs(t) for name, t in up.items()}

    def sent_bytes(self, ups: Tensors) -> int:
        clients = len(next(iter(ups.values())))
        return sign_bytes(clients, self.entries) + clients * LENGTH_BYTES * len(ups)


def scaled_signs(t: Tensor) -> Tensor:
    """T of one tensor, with the derivative of the identity."""
    signs: Tensor = _ScaledSigns.apply(t)  # type: ignore[no-untyped-call]
    return signs


class _ScaledSigns(torch.autograd.Function):
    """T, straight through."""

    generate_vmap_rule = True

    @staticmethod
    def forward(t: Tensor) -> Tensor:
        return t.abs().mean() * torch.where(t < 0, -1.0, 1.0)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient
