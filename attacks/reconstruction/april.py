"""APRIL in closed form: an image is read off the gradients of a vision transformer's patch and position embeddings.

Patch p of an image enters as z_p = E x_p + b + e_p, with x_p [s] its pixels, E [d, s] and e_p [d] the trained vector of
its position. With δ_p = ∂L/∂z_p one image has

    ∂L/∂e_p = δ_p      ∂L/∂E = Σ_p δ_p x_pᵀ      so that ∂L/∂E = Δ X, Δ = [δ_1 … δ_P] [d, P], X [P, s]

The first is the observation of Lu et al. 2022 (APRIL): the position embedding's gradient is that of the tokens. The
second is a linear system for all patches together. The paper solves another one with the same left side, for Z [P, d]:

    Qᵀ ∂L/∂Q + Kᵀ ∂L/∂K + Vᵀ ∂L/∂V = Δ Z

It holds where Z itself enters q, k and v and nothing else, and then X follows from Z by inverting E. Behind a norm its
right side is Δ' LN(Z), with Δ' the gradient by LN(Z), which no parameter shows. The system of E holds for every block,
and needs no inverse of E.

X is unique if Δ has rank P. Every path from z to the loss passes a norm, which takes the mean of a token off, so that
δ_p is orthogonal to the ones: P ≤ d − 1 is needed. If the rank is lower, the image nearest to mid-grey is taken.

A normalised input is a·x + c in each pixel, and a and c are found by playing the protocol on one random image. The same
play shows which parameter embeds positions, and whether what is seen obeys the system at all. Clipping scales both
sides alike, and steps on one image sum Δ. Of several images the left side holds a sum of Δ_i and the right one that of
Δ_i X_i, from which no X_i follows.

The system is solved by (ΔᵀΔ + λ)⁻¹Δᵀ. Pixels uniform on [0, 1] have the variance v = a²/12 about their middle, and
λ = τ²/v is the best ridge for an error of variance τ² in each equation. τ² is what the system's other equations, d − P
for each pixel of a patch, leave unexplained: about 0 without noise, rounding, quantisation or gaps in what was seen.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isqrt

import torch
import torch.nn.functional as F
from torch import Tensor

from fedarena.attacks.reconstruction.cards.april import Options
from fedarena.attacks.reconstruction.helpers.read_each import matched_labels, read_each
from fedarena.contracts.inference import Guess, Inference, Progress, Reconstruction, Watch
from fedarena.contracts.kept_entries import without_gaps
from fedarena.contracts.observation import Observation
from fedarena.contracts.view import View
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.core.threat import NotApplicable
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import targets

EXACT = 1e-3
"""Relative error up to which a play obeys the system: float32 after several steps."""

GREY, VARIANCE = 0.5, 1 / 12
"""Mean and variance of pixels uniform on [0, 1]."""

NO_POSITIONS = (
    "no gradient of a trained position embedding is seen, from which the tokens' gradients would follow: the embedding "
    "is fixed, or is not sent, or what is sent of it is something else"
)
SEVERAL = "the gradient of a position sums over several samples: only that of a single one determines its patches"


@dataclass(frozen=True)
class Embedding:
    """Where the system stands in what was seen.

    Attributes:
        weight: the name of E. positions: that of the position embedding, [d, P] or [P, d], with P + 1
            where a class token stands before the patches. side: pixels a side of a patch. shape: [C, H, W] of the
            image. scale, shift: a and c.
    """

    weight: str
    positions: str
    side: int
    shape: tuple[int, ...]
    scale: float = 1.0
    shift: float = 0.0

    @property
    def count(self) -> int:
        """P."""
        _, height, width = self.shape
        return height // self.side * (width // self.side)

    @property
    def lengths(self) -> tuple[int, int]:
        """How many positions there may be: one for each patch, and one for a class token before them."""
        return self.count, self.count + 1

    def system(self, tensors: Tensors) -> tuple[Tensor, Tensor]:
        """Δ [d, P] and ∂L/∂E [d, s], in double precision."""
        weight = tensors[self.weight].flatten(1).double()
        table = tensors[self.positions].squeeze().double()
        table = table if len(table) == len(weight) and table.shape[1] in self.lengths else table.T
        return table[:, -self.count :], weight

    def patches(self, image: Tensor) -> Tensor:
        """[C, H, W] → x_p, [P, s], in double precision."""
        return F.unfold(image[None].double(), self.side, stride=self.side)[0].T

    def image(self, patches: Tensor) -> Tensor:
        """a·x_p + c [P, s] → the image [C, H, W]."""
        columns = ((patches - self.shift) / self.scale).T
        return F.fold(columns[None], self.shape[1:], self.side, stride=self.side)[0]


def candidates(target: Tensors, shape: tuple[int, ...]) -> list[Embedding] | str:
    """The parameters that may embed positions, by their shapes; or why there are none."""
    name = next((n for n in target if n.endswith(".weight")), None)
    if name is None or len(shape) != 3:
        return "what was seen is no gradient of a network of images"
    width, pixels = target[name].flatten(1).shape
    side = isqrt(pixels // shape[0])
    if shape[0] * side**2 != pixels or shape[1] % side or shape[2] % side or side == min(shape[1:]):
        return "the first layer embeds no patches: its inputs are no squares into which the image can be cut"
    some = Embedding(name, positions="", side=side, shape=shape)
    shapes = [sorted((width, length)) for length in some.lengths]
    fits = [sorted(t.squeeze().shape) in shapes for t in target.values()]
    found = [n for n, fit in zip(target, fits, strict=True) if fit and n != name]
    return [replace(some, positions=n) for n in found] or NO_POSITIONS


def embedding(view: View, seen: Observation, probe: Tensor) -> Embedding | str:
    """The parameter that embeds positions, and a and c, by playing the protocol on one image; or why there is none.

    Args:
        probe: any image [C, H, W].
    """
    possible = candidates(seen.target, view.input_shape)
    if isinstance(possible, str):
        return possible
    like = seen.target[possible[0].weight]
    image, label = probe.to(like), torch.zeros(1, dtype=torch.int64, device=like.device)
    played = without_gaps(seen.simulate)[0](image[None], targets(label, view.n_classes, like))
    if candidates(played, view.input_shape) != possible:
        return NO_POSITIONS
    fits = [fitted(each, played, image) for each in possible]
    off, best = min(fits, key=lambda fit: fit[0])
    return best if off <= EXACT else NO_POSITIONS


def fitted(of: Embedding, played: Tensors, image: Tensor) -> tuple[float, Embedding]:
    """a and c by least squares, ∂L/∂E = a·Δ X + c·Δ 1, and the relative error of this system for one image."""
    table, weight = of.system(played)
    ones = torch.ones(1, weight.shape[1]).to(weight)
    sides = torch.stack([(table @ of.patches(image)).flatten(), (table.sum(1, keepdim=True) * ones).flatten()], 1)
    gram = sides.T @ sides
    a, c = (torch.linalg.pinv(gram, hermitian=True) @ (sides.T @ weight.flatten())).tolist()
    off = (sides @ sides.new_tensor([a, c]) - weight.flatten()).norm() / weight.norm()
    if not off <= EXACT or a == 0:  # also of no gradient at all
        return float("inf"), of
    return float(off), replace(of, scale=a, shift=c)


def solved(table: Tensor, weight: Tensor, middle: float, variance: float, rounding: float) -> Tensor:
    """X [P, s] of ∂L/∂E = Δ X, as near to `middle` as the system allows.

    Args:
        table, weight: Δ [d, P] and ∂L/∂E [d, s].
        variance: v, that of X about `middle`.
        rounding: share of the largest singular value of Δ up to which one counts as 0.
    """
    left, sizes, right = torch.linalg.svd(table, full_matrices=False)
    kept = sizes > rounding * sizes[0]
    rest = weight - middle * table.sum(1, keepdim=True)
    inside = left.T @ rest
    spare = (len(table) - int(kept.sum())) * weight.shape[1]  # equations beyond the unknowns
    off = (rest - left[:, kept] @ inside[kept]).square().sum() / max(1, spare)
    gain = torch.where(kept, sizes / (sizes.square() + off / variance), 0.0)
    found: Tensor = middle + right.T @ (gain[:, None] * inside)
    return found


class April(Inference):
    """The attack; see the module's docstring."""

    options: Options

    def watch(self, schedule: Schedule) -> Watch:
        o = self.options
        return Watch.spread("april", o.victims, o.start, o.window, schedule)

    def unreadable(self, seen: Observation) -> str:
        return SEVERAL if seen.images > 1 else ""

    def run(self, view: View, rng: Rng, progress: Progress) -> Guess | NotApplicable:
        def read(seen: Observation, i: int) -> Reconstruction | str:
            return self.unreadable(seen) or self.reconstruct(view, seen, rng.child("april", i))

        return read_each(view, read, progress)

    def reconstruct(self, view: View, seen: Observation, rng: Rng) -> Reconstruction | str:
        """The image behind one observation, or why it cannot be read."""
        of = embedding(view, seen, torch.rand(view.input_shape, generator=rng.torch()))
        if isinstance(of, str):
            return of
        table, weight = of.system(seen.target)
        if not bool(table.any()):
            return "the position embedding's gradient is 0"
        like = seen.target[of.weight]
        middle, variance = GREY * of.scale + of.shift, VARIANCE * of.scale**2
        patches = solved(table, weight, middle, variance, rounding=torch.finfo(like.dtype).eps)
        return matched_labels(view, seen, of.image(patches)[None].to(like))
