"""Min-Sum (Shejwalkar & Houmansadr, NDSS 2021): no farther from the honest uploads in sum than one of them.

every colluder sends μ + γ p with the largest γ that has  Σ_i ‖sent − g_i‖² ≤ min_i Σ_j ‖g_i − g_j‖²
"""

from __future__ import annotations

from torch import Tensor

from fedarena.attacks.poisoning.cards.min_sum import Options
from fedarena.attacks.poisoning.helpers.min_distance import MinDistance, centred, largest_step, squared_distances


class MinSum(MinDistance):
    """The attack; see the module's docstring and `fedarena.attacks.poisoning.cards.min_sum.Options`."""

    options: Options
    bounds = "the sum of squared distances"

    def step(self, x: Tensor, p: Tensor) -> float:
        """With r_i = μ − g_i, which add up to 0:  γ² n‖p‖² ≤ min_i Σ_j ‖g_i − g_j‖² − Σ_i ‖r_i‖²  (or max_i)."""
        r, p = centred(x), p.double()
        sums = squared_distances(r).sum(1)
        room = (sums.min() if self.options.bound == "min" else sums.max()) - r.square().sum()
        return largest_step(len(r) * (p @ p), room.new_zeros(1), room[None])
