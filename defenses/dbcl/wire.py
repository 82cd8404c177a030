"""DBCL's messages, and what a client computes from them: its parameters, and the sketch S of every hidden layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import torch

from fedarena.core.tensors import Tensors
from fedarena.defenses.dbcl.sketch import Sketch, draw
from fedarena.problem.client_steps import InputMap
from fedarena.problem.task import Task

SEED = "seed"
"""The 4 bytes ψ of a broadcast, from which both ends draw every S."""

Sketches = Mapping[str, Sketch]
"""S of every sketched parameter, by its name."""


@dataclass(frozen=True)
class DBCLWire:
    """The public facts by which a broadcast is read.

    Attributes:
        shapes: shape of every sketched weight W: [d_out, d_in], or [d_out, c, k, k] with d_in = c·k². The output layer
            is never sketched.
        distribution: how S is drawn, one of `fedarena.defenses.dbcl.sketch.DISTRIBUTIONS`.
    """

    shapes: Mapping[str, torch.Size]
    distribution: str

    @classmethod
    def of(cls, task: Task, distribution: str) -> Self:
        """The wire of a model."""
        *hidden, _output = task.layers
        return cls({f"{name}.weight": layer.weight.shape for name, layer in hidden}, distribution)

    def sketch(self, seed: int, layer: int, name: str, size: int) -> Sketch:
        """S [d_in, size] of one parameter; `layer` is its position among the model's parameters."""
        return draw(seed, layer, self.shapes[name][1:].numel(), size, self.distribution)

    def open(self, down: Tensors) -> tuple[Tensors, dict[str, Sketch]]:
        """The parameters of a broadcast, W̃ = W S or W itself, and S of every sketched one."""
        params = {name: t for name, t in down.items() if name != SEED}
        seed, sketches = int(down[SEED]), {}
        for layer, (name, w) in enumerate(params.items()):
            if name in self.shapes:
                sketches[name] = self.sketch(seed, layer, name, w.shape[1]).to(w.device)
        return params, sketches

    def expand(self, tensors: Tensors, maps: Mapping[str, InputMap]) -> Tensors:
        """Y ↦ Y Sᵀ in the plain model's shape, for every parameter that has a map; the others as they are."""
        return {
            name: maps[name].adjoint(t).reshape(self.shapes[name]) if name in maps else t for name, t in tensors.items()
        }

    def hidden(self, tensors: Tensors) -> Tensors:
        """The sketched parameters alone."""
        return {name: tensors[name] for name in self.shapes}
