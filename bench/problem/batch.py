"""The local work of one client in one round."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor


@dataclass(frozen=True)
class Batch:
    """Samples in the order in which the local steps take them. A Poisson batch may hold none (b = 0).

    Attributes:
        x: inputs [steps, b, *input_shape]; stacked over clients [clients, steps, b, ...].
        y: classes [steps, b] (int64), or probabilities [steps, b, n_classes].
    """

    x: Tensor
    y: Tensor

    def images(self) -> tuple[Tensor, Tensor]:
        """All samples of one client without the step axis: [steps·b, ...]."""
        return self.x.flatten(0, 1), self.y.flatten(0, 1)


@dataclass(frozen=True)
class Auxiliary:
    """Samples that a server must hold.

    Attributes:
        per_class: how many of each class.
        dataset: the data set that they come from; "": the federation's own, whose clients then lack them.
        option: which option says how many.
    """

    per_class: int
    dataset: str = ""
    option: str = field(default="", compare=False)
