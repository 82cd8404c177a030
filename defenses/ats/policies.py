"""Policies of ATS: up to three transformations in a row, and what a party makes of an image that had one of them.

A sample's policy is uniform among the public ones, and so are the signs of its transformations. A *variant* is a policy
with signs. Of an image v that an attack found, the variant is taken with the least

    ‖T(x) − v‖² + ‖x − clip(x)‖²,   x = T⁻¹(v), clip to [0, 1]

Where T moved the image, the first term tells in which direction: the edge that came in is black. The second one tells
the factors of colours.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor

from fedarena.core.errors import UserError
from fedarena.defenses.ats.transformations import FIFTY, changes

MOST = 3
"""Transformations of a policy."""
SIGNS = tuple(product((-1, 1), repeat=MOST))
"""All signs; a transformation without one ignores it."""


def parse(text: str) -> tuple[tuple[int, ...], ...]:
    """Policies from 3-1-7+43-18-18. Raises UserError."""
    try:
        found = tuple(tuple(int(number) for number in policy.split("-")) for policy in text.split("+"))
    except ValueError:
        found = ()
    if not found or any(len(p) > MOST or not all(0 <= number < len(FIFTY) for number in p) for p in found):
        raise UserError(
            f"option 'policies' is {text!r}, allowed: one to {MOST} numbers from 0 to {len(FIFTY) - 1} joined by -, "
            "and such policies joined by +, as in 3-1-7+43-18-18"
        )
    return found


@dataclass(frozen=True)
class Policies:
    """The public policies.

    Attributes:
        all: the numbers of the transformations of each.
    """

    all: tuple[tuple[int, ...], ...]

    @property
    def variants(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """(transformation, sign) in a row, of each policy with each of `SIGNS`."""
        return tuple(tuple(zip(p, signs[: len(p)], strict=True)) for p in self.all for signs in SIGNS)

    @property
    def blurs(self) -> bool:
        """Whether a transformation convolves images."""
        return any(FIFTY[number][0] == "sharpness" for policy in self.all for number in policy)

    def apply(self, x: Tensor, which: Tensor) -> Tensor:
        """Images [n, C, H, W], each with the variant [n] that was drawn for it. All variants of each are computed."""
        every = torch.stack([applied(variant, x) for variant in self.variants], 1)
        index = which.to(x.device).reshape(-1, *[1] * x.dim()).expand(-1, 1, *x.shape[1:])
        return every.gather(1, index).squeeze(1)

    def apply_drawn(self, x: Tensor, which: Tensor) -> Tensor:
        """As `apply`, without the variants that were not drawn; not under `vmap`."""
        changed = torch.empty_like(x)
        for k in which.unique().tolist():
            own = (which == k).to(x.device)
            changed[own] = applied(self.variants[k], x[own])
        return changed

    def __call__(self, v: Tensor) -> Tensor:
        """The images [n, C, H, W] that a party takes for the originals of images that it found."""
        tried, costs = [], []
        for variant in dict.fromkeys(self.variants):
            x = undone(variant, v)
            clipped = x.clamp(0, 1)
            off = (applied(variant, clipped) - v).square() + (x - clipped).square()
            tried.append(clipped)
            costs.append(off.flatten(1).sum(1))
        best = torch.stack(costs).nan_to_num(torch.inf).argmin(0)
        return torch.stack(tried)[best, torch.arange(len(v), device=v.device)]


def applied(variant: tuple[tuple[int, int], ...], x: Tensor) -> Tensor:
    """T(x)."""
    for number, sign in variant:
        x = changes(number, sign)[0](x)
    return x


def undone(variant: tuple[tuple[int, int], ...], v: Tensor) -> Tensor:
    """T⁻¹(v), as far as it can be undone."""
    for number, sign in reversed(variant):
        v = changes(number, sign)[1](v)
    return v
