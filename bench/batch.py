"""The local work of one client in one round."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Batch:
    """Samples in the order in which the local steps take them.

    Attributes:
        x: inputs [steps, b, *input_shape]; stacked over clients [clients, steps, b, ...].
        y: classes [steps, b] (int64), or probabilities [steps, b, n_classes].
    """

    x: Tensor
    y: Tensor

    def images(self) -> tuple[Tensor, Tensor]:
        """All samples of one client without the step axis: [steps·b, ...]."""
        return self.x.flatten(0, 1), self.y.flatten(0, 1)
