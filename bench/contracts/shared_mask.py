"""What a secure sum leaves in clear if its masks repeat within a message: differences of the message's equal parts.

    m = v + (ε, …, ε)        m_j − m_1 = v_j − v_1,   j = 2 … parts

The differences are those of a single client. They need no secret and are exact up to rounding. A message is a client's
upload times its share N_c/N, laid out in the order of its tensors. If BAFFLE's K numbers have one mask (one reading of
the paper's ε_c), these are K − 1 differences of loss differences.

Where a protocol reads an upload through its own client step, the differences are read through the same step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from fedarena.contracts.defense import Defense
from fedarena.contracts.observation import Observation, Reading, Simulator
from fedarena.contracts.secure_sum import SecureSum
from fedarena.contracts.transcript import Seen, weights
from fedarena.core.tensors import Tensors, flatten, scale, shaped, stack
from fedarena.core.threat import NotApplicable, Threat

NAME = "shared mask"
PARTS = "parts"


@dataclass(frozen=True)
class MaskDifferences:
    """Simulator: the differences of the parts of what a candidate batch would have sent.

    Attributes:
        simulate: the upload that it would have sent, or a multiple of it. names: the upload's tensors, in their order.
    """

    simulate: Simulator
    names: tuple[str, ...]
    parts: int

    def __call__(self, x: Tensor, y: Tensor) -> Tensors:
        return apart(self.simulate(x, y), self.names, self.parts)


def apart(up: Tensors, names: Sequence[str], parts: int) -> Tensors:
    """v_j − v_1 [parts − 1, d/parts] of an upload v of d numbers."""
    flat = flatten({name: up[name] for name in names}).reshape(parts, -1)
    return {PARTS: flat[1:] - flat[0]}


def readings(
    defense: Defense, secure: SecureSum, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
) -> Sequence[Reading]:
    """The protocol's own readings of one client's message as if it were in clear, reduced to what no mask covers.

    Observations that are no multiple of the upload, such as a gradient estimated from it, are left out.
    """
    unmasked = defense.secured(None).readings(threat, {t: _opened(defense, now) for t, now in seen.items()}, victims)
    if isinstance(unmasked, NotApplicable):
        return []
    like = {t: now.mean for t, now in seen.items() if now.mean is not None}
    cut = []
    for reading in unmasked:
        uploads = [o for o in reading.observations if set(o.target) == set(like.get(o.round, ()))]
        if uploads:
            observations = tuple(_apart(o, tuple(like[o.round]), secure.repeat) for o in uploads)
            cut.append(replace(reading, name=NAME, observations=observations))
    return cut[:1]


def _opened(defense: Defense, now: Seen) -> Seen:
    """The round as if messages were uploads."""
    if now.wire is None or now.mean is None:
        return now
    sizes = weights(defense.task.sizes, now.participants).to(now.wire)
    ups = [scale(float(sizes.sum() / n), shaped(m, now.mean)) for m, n in zip(now.wire, sizes, strict=True)]
    return replace(now, ups=stack(ups), mean=None, averaged=(), wire=None)


def _apart(seen: Observation, names: tuple[str, ...], parts: int) -> Observation:
    return replace(
        seen,
        target=apart(seen.target, names, parts),
        simulate=MaskDifferences(seen.simulate, names, parts),
        rough=None if seen.rough is None else MaskDifferences(seen.rough, names, parts),
        output_bias=None,
        estimate=None,
        noise_std=2**0.5 * seen.noise_std,
    )
