"""What a candidate batch would have had a client of BAFFLE send; the adaptive form matches it with what was seen.

    Differences   ΔL_k/σ (central: /2σ) of K directions, as Eq. 2 and 3 have it
    LocalSteps    W − W_local at the epoch level, every step along ĝ = (1/K) Σ_k z_k ΔL_k/σ

Neither is taken to first order, z_kᵀ ∂L/∂W, which is a tenth of the time and whose error no attack could tell from a
protection: ReLU networks answer directions of 10⁵ normal numbers with a few per cent of curvature and kinks already at
the default σ = 1e-4. Differences cancel, so they are taken in double precision, whatever the clients' own format: the
rounding is about 1e-16·L/σ, which a client's own exceeds.

Of the clients' format the perturbed parameters are rounded to, as theirs are; their rounded activations and losses are
not simulated. In float32 that leaves an error of about 1e-7·L/σ, and in float16 so much that the simulation says
little unless σ is a large part of the weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.func import vmap

from fedarena.defenses.baffle_options import FORMATS
from fedarena.defenses.baffle_wire import DIFFERENCES
from fedarena.defenses.cards.baffle import Options
from fedarena.observe import PlainGradient, as_batch
from fedarena.tensors import Tensors, shaped

if TYPE_CHECKING:
    from fedarena.defenses.baffle import Baffle

AT_ONCE = 50
"""Perturbed losses that are computed at once."""

Loss = Callable[[Tensors, Tensor, Tensor], Tensor]
Ends = tuple[Tensors, Tensors]
"""Parameters at which the two losses of each difference are taken: the first [K, ...], the second [K, ...] for central
differences and W itself for forward ones. In double precision."""


@dataclass
class Slot:
    """The perturbed parameters of one observation: the simulators of a reading share the memory that they take.

    Attributes:
        of: the directions that they belong to. ends: the parameters.
    """

    of: Tensor | None = None
    ends: Ends | None = None


@dataclass(frozen=True)
class Differences:
    """Simulator of the batch level: ΔL_k/σ (central: /2σ) of a candidate batch, by K perturbed losses.

    Attributes:
        plain: the gradient that a candidate batch gives, which knows the parameters and the loss.
        z: the directions [K, n].
        options: the protocol's.
        slot: shared with the other simulators of a reading.
    """

    plain: PlainGradient
    z: Tensor
    options: Options
    slot: Slot = field(default_factory=Slot, compare=False)

    def __call__(self, x: Tensor, y: Tensor) -> Tensors:
        if self.slot.of is not self.z or self.slot.ends is None:
            self.slot.of, self.slot.ends = self.z, ends(self.options, self.plain.params, self.z)
        return {DIFFERENCES: slopes(self.options, self.plain.loss, self.slot.ends, x, y).to(x.dtype)}


@dataclass(frozen=True)
class LocalSteps:
    """Simulator of the epoch level: W − W_local of one client, its steps replayed along the seed's directions.

    A client visits its samples in a new order in every local epoch, which nobody else knows: with several epochs the
    candidate is replayed in one order, and the true samples give an update that is far from the one seen.

    Attributes:
        defense: the protocol. start: W. client: whose. z: the directions of every local step [steps, K, n].
    """

    defense: Baffle
    start: Tensors
    client: int
    z: Tensor

    def __call__(self, x: Tensor, y: Tensor) -> Tensors:
        o, loss = self.defense.options, self.defense.task.loss

        def estimate(params: Tensors, x: Tensor, y: Tensor, t: int) -> Tensors:
            found = slopes(o, loss, ends(o, params, self.z[t]), x, y)
            g = found.to(self.z.dtype) @ self.z[t] / self.z.shape[1]
            return self.defense.clipped(shaped(g, params))

        return self.defense.local(self.start, as_batch(self.defense.task, x, y), {}, estimate)[0]


def ends(o: Options, w: Tensors, z: Tensor) -> Ends:
    """Where the losses of the differences along z [K, n] are taken, rounded as a client's perturbed parameters are."""
    dtype = FORMATS[o.precision]
    here = {name: rounded(p.double(), dtype) for name, p in w.items()}
    delta = {name: rounded(t.double(), dtype) for name, t in shaped(o.sigma * z, w).items()}
    there = {name: rounded(here[name] + delta[name], dtype) for name in w}
    if o.scheme == "forward":
        return there, here
    return there, {name: rounded(here[name] - delta[name], dtype) for name in w}


def slopes(o: Options, loss: Loss, at: Ends, x: Tensor, y: Tensor) -> Tensor:
    """ΔL_k/σ, for central differences ΔL_k/2σ [K]; in double precision."""
    there, here = at
    x, y = x.double(), y.double()
    each = vmap(loss, in_dims=(0, None, None), chunk_size=AT_ONCE)
    if o.scheme == "forward":
        return (each(there, x, y) - loss(here, x, y)) / o.sigma
    return (each(there, x, y) - each(here, x, y)) / (2 * o.sigma)


def rounded(t: Tensor, dtype: torch.dtype) -> Tensor:
    """Doubles as another format holds them; to derivatives the identity."""
    if dtype == torch.float64:
        return t
    fixed = t.detach()
    return t + (fixed.to(dtype).double() - fixed)
