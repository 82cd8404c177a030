"""The loss that a model is trained for, and how its outputs are read.

    cross-entropy   −Σ_k ȳ_k log softmax(y)_k
    mse             ½ ‖y − ȳ‖², ȳ one-hot                         (PBPFL, Eq. 3)
    regression      ½ (y − ȳ)², one output; ȳ is the number to be predicted, or for classes k of K the grade k/(K − 1)

Each is a mean over the samples. The derivative of a sample's loss by the outputs is a residual, prediction − target;
the faster forms of training need nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from fedarena.core.errors import UserError

LOSSES = ("cross-entropy", "mse", "regression")

WORST = -1e6
"""The least R² in records; smaller values are set to it."""


@dataclass(frozen=True)
class Criterion:
    """A loss on the outputs of a model.

    Attributes:
        loss: one of `LOSSES`.
        n_classes: K; 0: the labels are numbers.

    Raises:
        UserError: a loss that the labels do not allow.
    """

    loss: str
    n_classes: int

    def __post_init__(self) -> None:
        if self.n_classes == 0 and self.loss != "regression":
            raise UserError(f"option 'loss' is {self.loss}, but the labels are numbers: allowed: regression")

    @property
    def outputs(self) -> int:
        """How many outputs the model has."""
        return 1 if self.loss == "regression" else self.n_classes

    def target(self, y: Tensor, like: Tensor) -> Tensor:
        """ȳ [..., outputs] in the number format of `like`, from labels as in `Task.loss`."""
        soft = y.is_floating_point() and self.n_classes > 0  # probabilities
        if self.loss != "regression":
            # No F.one_hot: that looks at values, which cannot be done under vmap.
            classes = torch.arange(self.n_classes, device=y.device)
            return y.to(like) if soft else (y.unsqueeze(-1) == classes).to(like)
        if soft:
            grades = torch.arange(self.n_classes, dtype=like.dtype, device=like.device) / (self.n_classes - 1)
            return (y.to(like) @ grades).unsqueeze(-1)
        numbers = y.to(like) if y.is_floating_point() else y.to(like) / (self.n_classes - 1)
        return numbers.unsqueeze(-1)

    def each(self, out: Tensor, y: Tensor) -> Tensor:
        """The loss of every sample: outputs [n, outputs] and labels → [n]."""
        if self.loss == "cross-entropy":
            return F.cross_entropy(out, y, reduction="none")
        return 0.5 * (out - self.target(y, out)).square().sum(-1)

    def mean(self, out: Tensor, y: Tensor) -> Tensor:
        """The mean loss of a batch."""
        return F.cross_entropy(out, y) if self.loss == "cross-entropy" else self.each(out, y).mean()

    def residual(self, out: Tensor, target: Tensor) -> Tensor:
        """∂ loss/∂out of every sample, from targets as by `target`; any leading axes."""
        if self.loss != "cross-entropy":
            return out - target
        return out.softmax(-1) * target.sum(-1, keepdim=True) - target  # probabilities that need not add up to 1

    def classes(self, out: Tensor) -> Tensor:
        """The predicted classes [n] (int64): the largest output, or the nearest grade."""
        if self.loss != "regression":
            return out.argmax(-1)
        return (out.squeeze(-1) * (self.n_classes - 1)).round().clamp(0, self.n_classes - 1).long()

    @property
    def measure(self) -> str:
        """The name of the measure that `quality` returns."""
        return "accuracy" if self.n_classes else "R2"

    def quality(self, out: Tensor, y: Tensor) -> float:
        """The accuracy of all predictions; for numbers R² = 1 − Σ(y − ȳ)²/Σ(ȳ − mean ȳ)², which may be below 0.

        R² is at least `WORST`, also if predictions are not finite, because records hold finite numbers.
        """
        if self.n_classes:
            return float((self.classes(out) == y).double().mean())
        truth = y.double()
        r2 = 1.0 - float((out.squeeze(-1).double() - truth).square().sum() / (truth - truth.mean()).square().sum())
        return r2 if r2 > WORST else WORST
