"""A network with one output more: the sum of its last layer's inputs."""

from __future__ import annotations

import copy
from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.func import functional_call


class Widened:
    """(y, α) of a network that ends in a dense layer: y = W h + b, and α = Σ_j h_j, plus 1 where there is a bias.

    α is the output of a further unit whose weights are all 1, so that one pass gives both.

    Attributes:
        model: the network with that unit; its own parameter values are never used.
    """

    def __init__(self, model: nn.Module, output: str) -> None:
        self.model = copy.deepcopy(model)
        last = self.model.get_submodule(output)
        assert isinstance(last, nn.Linear)
        self._output = output
        # In place, since a model may hold its layers by more than one reference.
        last.weight = nn.Parameter(last.weight.new_ones(last.out_features + 1, last.in_features), requires_grad=False)
        if last.bias is not None:
            last.bias = nn.Parameter(last.bias.new_ones(last.out_features + 1), requires_grad=False)
        last.out_features += 1

    def params(self, params: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The parameters with those of the further unit."""
        widened = dict(params)
        for name in (f"{self._output}.weight", f"{self._output}.bias"):
            if name in widened:
                widened[name] = torch.cat([widened[name], torch.ones_like(widened[name][:1])])
        return widened

    def __call__(self, params: Mapping[str, Tensor], x: Tensor) -> tuple[Tensor, Tensor]:
        """[n, *input_shape] → y [n, outputs], α [n]."""
        out: Tensor = functional_call(self.model, self.params(params), (x,))
        return out[:, :-1], out[:, -1]
