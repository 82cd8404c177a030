"""Local training of a client of DBCL that has W̃ = W S alone, as if it trained W inside the sketched layer.

An optimiser that is linear in gradients moves W by steps in the row space of Sᵀ. With S = Q R (see
`fedarena.defenses.dbcl.sketch`) they are a Qᵀ, and the client trains

    P = W̃ R⁻¹ = W Q,   in a network with the weights P Tᵀ, T = S Rᵀ
    P ← P − a D,       D = Qᵀ Q, a the optimiser's step for the gradient ∂L/∂P = (∂L/∂W)·Q-coordinates
    u = (Σ a) R⁻ᵀ      the upload: W moves by u Sᵀ = (Σ a) Qᵀ

Where rows of S have one entry at most, entries of a step are entries of W's step, so Adam is the same Adam, too.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from fedarena.core.tensors import Tensors
from fedarena.defenses.dbcl.sketch import Sketch
from fedarena.defenses.dbcl.wire import Sketches


class LocalCoordinates:
    """What a client trains in one round of local steps; see the module's docstring.

    Attributes:
        maps: T of every sketched parameter. metric: the diagonal of D.
    """

    def __init__(self, sketches: Sketches) -> None:
        self._sketches = sketches
        self.maps = {name: LocalMap(sketch) for name, sketch in sketches.items()}
        self.metric = {name: sketch.counts() for name, sketch in sketches.items()}

    def start(self, params: Tensors) -> Tensors:
        """W̃ ↦ P; the other parameters as they are."""
        return self._each(params, transposed=False)

    def upload(self, steps: Tensors) -> Tensors:
        """Σ a ↦ u, of one client or of several."""
        return self._each(steps, transposed=True)

    def _each(self, tensors: Tensors, transposed: bool) -> Tensors:
        back = {n: s.times_r(tensors[n], transposed=transposed, inverse=True) for n, s in self._sketches.items()}
        return {**tensors, **back}


@dataclass(frozen=True)
class LocalMap:
    """T = S Rᵀ, as a map on a layer's input."""

    sketch: Sketch

    def apply(self, x: Tensor) -> Tensor:
        return self.sketch.times_r(self.sketch.apply(x), transposed=True)

    def adjoint(self, g: Tensor) -> Tensor:
        return self.sketch.expand(self.sketch.times_r(g))
