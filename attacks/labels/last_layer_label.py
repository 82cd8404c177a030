"""Labels from the output layer: which classes does its gradient raise?

With features h(x) of the last hidden layer and predictions p the gradient of the output layer is

    ∂L/∂b_c = (1/n) Σ_i (p_ic − 1[y_i = c]),     ∂L/∂W_c = (1/n) Σ_i (p_ic − 1[y_i = c]) h(x_i),

and the attack reads one number s_c of it for each class:

    evidence=bias   s_c = ∂L/∂b_c
    evidence=rows   s_c = Σ_j ∂L/∂W_cj + ∂L/∂b_c, the row [W_c, b_c] projected on (1, …, 1). This vector stands in for
                    the mean feature, which the view does not have. With h ≥ 0, as after ReLU and sigmoid, a sample has
                    the weight a_i = 1 + Σ_j h_j(x_i) > 0 in s_c. Where features are large (sigmoid), noise weighs less.

One sample: its class has the only negative entry, argmin_c s_c (iDLG).

Several samples: if all a_i = a and predictions were uniform, −s_c = a·(n_c/n − 1/C) with counts n_c. The attack names
the class with the largest remainder n times, and lowers its remainder by a/n each time. The unit a is

    1                              for the bias of a gradient
    what a change of labels        moves it by in a simulation, where the bias is seen in anything else
    √(Σ_c s_c² · n/(1 − 1/C))      for rows, since the mean of Σ_c (n_c/n − 1/C)² over draws of labels is (1 − 1/C)/n
"""

from __future__ import annotations

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from fedarena.attacks.labels.cards.last_layer_label import Options
from fedarena.contracts.inference import GoalName, Inference, Labels, Progress, Watch
from fedarena.contracts.observation import Observation
from fedarena.contracts.view import View
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.core.threat import NotApplicable
from fedarena.problem.schedule import Schedule


class LastLayerLabel(Inference):
    """The attack; see the module's docstring."""

    options: Options
    goal: ClassVar[GoalName] = "labels"

    def watch(self, schedule: Schedule) -> Watch:
        return Watch.opening(self.options.rounds, schedule)

    def run(self, view: View, rng: Rng, progress: Progress) -> list[Labels] | NotApplicable:
        weight, bias = f"{view.output_layer}.weight", f"{view.output_layer}.bias"
        needed = bias if self.options.evidence == "bias" else weight
        guesses = []
        for seen in view.observations:
            source = showing(seen, needed)
            if source is None:
                return NotApplicable(f"neither what was seen nor an estimate shows the gradient of {needed}")
            if len(source[needed]) != view.n_classes:
                return NotApplicable("the output layer has no output for each class, whose gradients could be compared")
            if self.options.evidence == "bias":
                gradient = source is seen.estimate or source is seen.output_gradient
                s, unit = source[bias], 1.0 if gradient else moved(seen, bias, view)
            else:
                s = source[weight].sum(1) + source.get(bias, 0.0)
                unit = float(s.double().norm()) * (seen.images / (1 - 1 / len(s))) ** 0.5
            guesses.append(Labels(name_classes(s, seen.images, unit)))
        return guesses


def showing(seen: Observation, name: str) -> Tensors | None:
    """The tensors from which a parameter's gradient can be read: the estimate of the gradient, else what was seen.

    In the canonical form, the columns of the output layer are scaled by positive factors. For features of one sample
    this does not change the signs and the order of the rows' sums. A bias has no factor.
    """
    if seen.output_gradient is not None and name in seen.output_gradient:
        return seen.output_gradient
    if seen.estimate is not None and seen.estimate_of.gradient and name in seen.estimate:
        return seen.estimate
    return seen.target if name in seen.target else None


def moved(seen: Observation, bias: str, view: View) -> float:
    """The unit of the output bias as seen: how far it moves if the labels of grey images change from uniform to one
    class. 1 for a gradient."""
    n, classes = seen.images, view.n_classes
    grey = torch.full((n, *view.input_shape), 0.5).to(seen.target[bias])
    first = F.one_hot(torch.zeros(n, dtype=torch.int64), classes).to(grey)
    uniform = torch.full_like(first, 1 / classes)
    change = seen.simulate(grey, uniform)[bias] - seen.simulate(grey, first)[bias]
    return float(change[0]) / (1 - 1 / classes)


def name_classes(s: Tensor, n: int, unit: float) -> Tensor:
    """The n classes that s [classes] shows, in the order of the guesses: [n] (int64)."""
    remainder, named = -s.double().nan_to_num(0.0, 0.0, 0.0), []
    for _ in range(n):
        named.append(int(remainder.argmax()))
        remainder[named[-1]] -= unit / n
    return torch.tensor(named)
