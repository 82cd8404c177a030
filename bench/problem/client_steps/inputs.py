"""Linear maps on the inputs of dense layers."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor


class InputMap(Protocol):
    """A linear map on a dense layer's input, shared by all clients of a round."""

    def apply(self, x: Tensor) -> Tensor:
        """[..., d_in] → [..., s]."""

    def adjoint(self, g: Tensor) -> Tensor:
        """[..., s] → [..., d_in], the transposed map."""
