"""What a party knows of the attention layers behind an observation: the model, and the span of what entered them.

With q = W_q z + b for each token, ∂L/∂W_q = Σ_t ∂L/∂q_t z_tᵀ, so that its rows lie in the span of the inputs z_t [d]
(Dimitrov et al. 2024, Theorem 3.1; Petrov et al. 2024, Theorem 5.1). The same holds for W_k and W_v, whose inputs are
the same, and for the narrow factor A of an adapter W + B A.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fedarena.attacks.reconstruction.helpers.first_layers import inputs_of
from fedarena.contracts.observation import Observation
from fedarena.contracts.simulators import PlainGradient, ThroughProtocol
from fedarena.core.tensors import Tensors
from fedarena.models.attention import Attention
from fedarena.problem.task import Task

SPARE = 8
"""Dimensions that a span leaves open at least: a span of everything tells nothing apart."""


@dataclass(frozen=True)
class KnownModel:
    """The plain model that a party knows, in whose attentions a search for texts can be made.

    Attributes:
        params: the plain model's parameters. attentions: the names of the attentions, in order, two or more.
    """

    task: Task
    params: Tensors
    attentions: tuple[str, ...]

    def inputs(self, which: int, x: Tensor) -> Tensor:
        """What enters an attention [n, length, d] for texts [n, length, words], in double precision."""
        n, length = x.shape[:2]
        entering = inputs_of(self.task, self.params, f"{self.attentions[which]}.q", x)
        z: Tensor = entering.reshape(n, length, -1).double()
        return z

    def seen_of(self, target: Tensors, which: int) -> list[Tensor]:
        """The matrices in a target whose rows lie in the span of an attention's inputs."""
        names = (f"{self.attentions[which]}.{part}.{kind}" for part in "qkv" for kind in ("weight", "a.weight"))
        return [target[name] for name in names if name in target and target[name].dim() == 2]


def known_model(seen: Observation) -> KnownModel | str:
    """The model behind an observation, or why texts cannot be searched for in it."""
    simulate = seen.simulate
    if isinstance(simulate, PlainGradient):
        task, params = simulate.task, simulate.params
    elif isinstance(simulate, ThroughProtocol):
        task, params = simulate.defense.task, simulate.down
    else:
        return "the party does not know the model at which the gradient was taken"
    layers = {name: layer for name, layer in task.model.named_modules() if isinstance(layer, Attention)}
    if len(task.input_shape) != 2 or len(layers) < 2:
        return "the model has no two layers of attention over the words of a text"
    if not all(layer.causal for layer in layers.values()):
        return "the attention is not causal: what enters the second layer at a word depends on the words after it"
    wanted = {name: p.shape for name, p in task.model.named_parameters()}
    if {name: t.shape for name, t in params.items()} != wanted:
        return "the party does not know the plain model's parameters"
    known = KnownModel(task, params, tuple(layers))
    for which in (0, 1):
        found = known.seen_of(seen.target, which)
        if any(name in wanted and t.shape != wanted[name] for name, t in seen.target.items()) or not found:
            return "what was seen holds no gradient of the weights of q, k and v"
    return known


@dataclass(frozen=True)
class Span:
    """A subspace.

    Attributes:
        basis: orthonormal rows [r, d]; r may be 0.
    """

    basis: Tensor

    def distance(self, z: Tensor) -> Tensor:
        """‖z − its projection‖/‖z‖ of vectors [..., d], from 0 to 1."""
        outside = (z - z @ self.basis.T @ self.basis).norm(dim=-1)
        share: Tensor = outside / z.norm(dim=-1).clamp_min(torch.finfo(z.dtype).tiny)
        return share


def span_of(matrices: list[Tensor], noise_std: float, tolerance: float) -> Span | str:
    """The span of the rows of matrices [m, d] but for rounding or noise, or why there is none.

    Without noise each matrix counts alike, and directions with less than a share of the largest singular value are
    rounding. With noise of a known standard deviation σ, directions below σ·(√m + √d), its largest singular value, are
    noise.

    Args:
        tolerance: that share.
    """
    present = [t.double() for t in matrices if bool(t.any())]
    if not present:
        return "the gradient of q, k and v is 0, as that of adapters in the first round, in which B is 0"
    rows = torch.cat(present if noise_std else [t / t.norm() for t in present])
    _, sizes, right = torch.linalg.svd(rows, full_matrices=False)
    m, d = rows.shape
    least = noise_std * (m**0.5 + d**0.5) if noise_std else tolerance * float(sizes[0])
    return Span(right[: min(int((sizes > least).sum()), max(1, d - 1 - SPARE))])
