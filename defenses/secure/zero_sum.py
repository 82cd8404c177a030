"""Masks of floats that sum to zero (Feng et al., "Does Federated Learning Really Need Backpropagation?", 2023).

    u_c = x_c + (N/N_c) ε_c,   Σ_c ε_c = 0                    the paper's upload
    (N_c/N) u_c = v_c + ε_c,   v_c = (N_c/N) x_c              as sent here, weighted
    ε_c = spread · √(n/(n−1)) · (g_c − mean g),  g_c ~ N(0, 1) for every coordinate of every client

The paper takes the masks from secure aggregation and says no more about them. Here a trusted dealer sends each client
its mask, with entries of standard deviation `spread`. Two properties differ from masks of integers (`pairwise`):

    - the total is not exact. Masks and v_c + ε_c are rounded to the grid of floats of the masks' size, so that the
      total is off by some 1 to 4 times spread · 2⁻²⁵ · √n for float32, however small the vectors are;
    - an upload is not uniform. Between two sets of vectors V, V' [n, d] with the same sum, a server that knows both
      guesses right with probability Φ(‖V − V'‖ / (2 · spread · √(n/(n−1)))) after one round, and better with each
      round in which the same is sent. A larger spread hides more and rounds more.

With `repeat` equal parts of a vector share one mask, as in PBPFL's printed form (λ_k is added to each of its three
uploads). Then differences of parts are in clear. The option exists to show this leak.

If a client dropped out, the masks of the others would no longer cancel, and the total could not be recovered. So all
clients take part here.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from fedarena.contracts.secure_sum import Exchange, SecureSum, require_two
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.defenses.secure.cards.zero_sum import Options


class ZeroSum(SecureSum):
    """The masks; see the module's docstring."""

    options: Options
    besides = "the dealer's mask"

    @property
    def repeat(self) -> int:
        return self.options.repeat

    @property
    def spread(self) -> float:
        return self.options.spread

    def rounding(self, n: int, dtype: torch.dtype) -> float:
        """About spread · ε · √(n/6): each mask and each v_c + ε_c is rounded once, by a third of ε/2 of its size."""
        return self.options.spread * torch.finfo(dtype).eps * math.sqrt(n / 6)

    def check(self, n: int) -> None:
        require_two("zero-sum", n)

    def __call__(self, vectors: Tensor, rng: Rng) -> Exchange:
        self.check(len(vectors))
        parts, d = self.repeat, vectors.shape[1]
        if d % parts:
            raise UserError(f"secure zero-sum: option 'repeat' is {parts}, allowed: a divisor of {d}, an upload's size")
        masks = self.deal(len(vectors), d // parts, rng.child("dealer")).to(vectors).repeat(1, parts)
        wire = vectors + masks
        down = masks[0].numel() // parts * masks.element_size()
        return Exchange(wire, wire.sum(0), tuple(range(len(vectors))), extra_up=0.0, extra_down=float(down))

    def deal(self, n: int, d: int, rng: Rng) -> Tensor:
        """The dealer's masks [n, d], float64: entries N(0, spread²), columns with sum 0 up to rounding."""
        g = torch.randn(n, d, generator=rng.torch(), dtype=torch.float64)
        masks: Tensor = self.options.spread * math.sqrt(n / (n - 1)) * (g - g.mean(0))
        return masks
