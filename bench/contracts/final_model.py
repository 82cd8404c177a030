"""What a party has of the model in the end: its parameters, or its predictions.

`WhiteBox` is the network itself. `BlackBox` answers queries with confidences, counts them, and gives no gradient. The
object holds its parameters, because the harness passes it between processes. Python cannot hide them: an attack that
reads them cheats.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from fedarena.core.tensors import Tensors
from fedarena.problem.task import Task

FinalModel = Literal["deployed", "release", "queries", "own model"]
"""Which model a party has in the end (`fedarena.contracts.defense.Defense`):

    deployed     what the server deploys (`deployed`), in clear
    release      what clients are given (`release`), in clear
    queries      the answers of the same model
    own model    without a server, the node's own (`release`), in clear
"""

FINAL_MODEL_MEANING: dict[FinalModel, str] = {
    "deployed": "the model that it deploys",
    "release": "the model that clients are given in the end",
    "queries": "answers of the released model to its queries",
    "own model": "its own model after the last round",
}


@dataclass(frozen=True)
class WhiteBox:
    """A model in clear.

    Attributes:
        task: the public facts, the architecture among them.
        params: the model.
    """

    task: Task
    params: Tensors

    def outputs(self, x: Tensor) -> Tensor:
        """[n, *input_shape] → [n, outputs]; with cross-entropy the logits. Differentiable."""
        return self.task.outputs(self.params, x)

    def confidences(self, x: Tensor) -> Tensor:
        """The model's answers [n, outputs] in float64: softmax if trained for cross-entropy, else its outputs."""
        return confidences(self.task, self.outputs(x))

    @torch.no_grad()
    def losses(self, x: Tensor, y: Tensor) -> Tensor:
        """Every sample's loss, [n] (float64), computed for a thousand samples at a time."""
        parts = zip(x.split(1000), y.split(1000), strict=True)
        return torch.cat([self.task.criterion.each(self.outputs(part).double(), labels) for part, labels in parts])


@dataclass(frozen=True)
class BlackBox:
    """A model that can only be queried.

    Attributes:
        task: the public facts. An attacker may know the architecture, but not the parameters.
    """

    task: Task
    _params: Tensors
    _count: list[int] = field(default_factory=lambda: [0])

    @torch.no_grad()
    def confidences(self, x: Tensor) -> Tensor:
        """The same as of a white box, computed for a thousand samples at a time. Each sample counts as one query."""
        self._count[0] += len(x)
        return confidences(self.task, torch.cat([self.task.outputs(self._params, part) for part in x.split(1000)]))

    @property
    def queries(self) -> int:
        """The number of samples queried so far."""
        return self._count[0]


Predictor = WhiteBox | BlackBox


def confidences(task: Task, outputs: Tensor) -> Tensor:
    """softmax of logits, in double precision; outputs of other losses as they are."""
    wide = outputs.double()
    return wide.softmax(-1) if task.schedule.loss == "cross-entropy" else wide
