"""Simulators of BAFFLE: what a client with a candidate batch would have sent. The adaptive form matches it.

    Differences   ΔL_k/σ (central: /2σ) of K directions, as Eq. 2 and 3 have it
    Projections   the same to first order, z_kᵀ ∂L/∂W
    LocalSteps    W − W_local at the epoch level, every step along ĝ = (1/K) Σ_k z_k s_k, s_k by either of the two

The first order differs from what a client sent: along 55,000 normal numbers, ReLU networks have curvature and kinks,
which make some per cent of the differences at σ = 1e-4. But the differences have a ramp of width σ wherever a unit is
about to switch, and a search from a random start fails at these ramps. So for small σ a search begins with the first
order, and ends with the differences. Their terms cancel, so they are computed in double precision, with a rounding
error of about 1e-16·L/σ.

The perturbed parameters are rounded to the clients' format, as the clients' are. The clients' rounded activations and
losses are not simulated. That leaves an error of the simulation of about 1e-7·L/σ in float32, and a thousand times as
much in float16. It may be larger than the differences themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.func import vmap

from fedarena.contracts.simulators import PlainGradient, as_batch
from fedarena.core.gradients import grad
from fedarena.core.tensors import Tensors, flatten, shaped
from fedarena.defenses.baffle.card import Options
from fedarena.defenses.baffle.check_options import FORMATS
from fedarena.defenses.baffle.wire import DIFFERENCES, BaffleWire
from fedarena.problem.task import Task

SMALL = 1e-2
"""σ up to which a search begins with the first order."""

AT_ONCE = 50
"""Perturbed losses that are computed at once."""

Loss = Callable[[Tensors, Tensor, Tensor], Tensor]
Ends = tuple[Tensors, Tensors]
"""Parameters at which the two losses of each difference are taken: the first [K, ...], the second [K, ...] for central
differences and W itself for forward ones. In double precision."""


@dataclass
class Slot:
    """The perturbed parameters of one observation. The simulators of a reading share the memory of these parameters.

    Attributes:
        of: the directions that they belong to. ends: the parameters.
    """

    of: Tensor | None = None
    ends: Ends | None = None


@dataclass(frozen=True)
class Differences:
    """Simulator of the batch level: ΔL_k/σ (central: /2σ) of a candidate batch, by K perturbed losses.

    Attributes:
        plain: the gradient that a candidate batch gives; it holds the parameters and the loss.
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
class Projections:
    """Simulator of the batch level to first order: z_kᵀ ∂L/∂W of a candidate batch.

    Attributes:
        plain: the gradient that a candidate batch gives. z: the directions [K, n].
    """

    plain: PlainGradient
    z: Tensor

    def __call__(self, x: Tensor, y: Tensor) -> Tensors:
        return {DIFFERENCES: self.z @ flatten(self.plain(x, y))}


@dataclass(frozen=True)
class LocalSteps:
    """Simulator of the epoch level: W − W_local of one client, its steps replayed along the seed's directions.

    A client visits its samples in a new order in every local epoch, which no other party knows. With several epochs
    the candidate is replayed in one order, and even the true samples give an update that is far from the one seen.

    Attributes:
        task: public facts. wire: the protocol's. start: W.
        z: the directions of every local step [steps, K, n].
        exact: by differences; else to first order.
    """

    task: Task
    wire: BaffleWire
    start: Tensors
    z: Tensor
    exact: bool = True

    def __call__(self, x: Tensor, y: Tensor) -> Tensors:
        o, loss = self.wire.options, self.task.loss

        def estimate(params: Tensors, x: Tensor, y: Tensor, t: int) -> Tensors:
            z = self.z[t]
            slope = slopes(o, loss, ends(o, params, z), x, y) if self.exact else z @ flatten(grad(loss)(params, x, y))
            g = slope.to(z.dtype) @ z / len(z)
            return self.wire.clipped(shaped(g, params))

        return self.wire.local(self.start, as_batch(self.task, x, y), {}, estimate)[0]


def ends(o: Options, w: Tensors, z: Tensor) -> Ends:
    """The parameters at which losses are taken for z [K, n], rounded as a client's perturbed parameters are."""
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
