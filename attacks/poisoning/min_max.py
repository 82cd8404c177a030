"""Min-Max (Shejwalkar & Houmansadr, NDSS 2021): as near to all honest uploads as these are to each other.

every colluder sends μ + γ p with the largest γ that has  max_i ‖sent − g_i‖ ≤ max_{i,j} ‖g_i − g_j‖
"""

from __future__ import annotations

from torch import Tensor

from fedarena.attacks.poisoning.cards.min_max import Options
from fedarena.attacks.poisoning.helpers.min_distance import MinDistance, centred, largest_step, squared_distances


class MinMax(MinDistance):
    """The attack; see the module's docstring and `fedarena.attacks.poisoning.cards.min_max.Options`."""

    options: Options
    bounds = "the largest distance"

    def step(self, x: Tensor, p: Tensor) -> float:
        """With r_i = μ − g_i, for every i:  γ²‖p‖² + 2γ⟨r_i, p⟩ ≤ max_{i,j} ‖g_i − g_j‖² − ‖r_i‖²."""
        r, p = centred(x), p.double()
        return largest_step(p @ p, r @ p, squared_distances(r).max() - r.square().sum(1))
