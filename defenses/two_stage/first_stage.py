"""FirstAGG: does an upload look like the noise that it must carry? (Xiang et al. 2023, Section 4.3, Algorithm 2)

An honest upload times b is a short signal plus N(0, σ²I). Divided by σ, its d coordinates z are tested twice:

    norm    ‖z‖² lies within d ± norm_sds·√(2d), the mean and standard deviation of χ²_d
    KS      sup_x |#{z_i ≤ x}/d − Φ(x)| has p ≥ level under Kolmogorov's exact distribution for d samples

Pure noise fails the first with probability 0.27 % at three standard deviations, and the second with 5 % at level 0.05.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

CHUNK = 4
MANY = 256
"""Fewer rows than this are tested one by one: to look for equal ones would take longer than it saves."""


@dataclass(frozen=True)
class FirstStage:
    """The two tests.

    Attributes:
        norm_sds: half width of the interval of ‖z‖² in standard deviations. level: of the KS test.
    """

    norm_sds: float = 3.0
    level: float = 0.05

    def rejects(self, x: Tensor, std: float) -> Tensor:
        """Which rows of x [n, d] fail a test [n], for noise of standard deviation `std`.

        Rows that are not finite fail. A few rows at a time fit into the cache. Of many rows, equal ones that follow
        each other are tested once: colluders may send the same.
        """
        if len(x) > MANY and (repeats := _repeats(x)).any():
            return self.rejects(x[~repeats], std)[(~repeats).cumsum(0) - 1]
        d = x.shape[1]
        width = self.norm_sds * math.sqrt(2 * d)
        passed = []
        for rows in x.split(CHUNK):
            z = rows / std
            inside = (torch.linalg.vector_norm(z, dim=1).square() - d).abs() <= width
            passed.append(inside & (statistic(z) <= critical(d, self.level)))
        return ~torch.cat(passed)


def _repeats(x: Tensor) -> Tensor:
    """Which rows of x [n, d] equal the one before them, entry by entry [n]."""
    found = torch.zeros(len(x), dtype=torch.bool, device=x.device)
    alike = (x[1:, :CHUNK] == x[:-1, :CHUNK]).all(1)
    for i in alike.nonzero().flatten().tolist():
        found[i + 1] = torch.equal(x[i], x[i + 1])
    return found


def statistic(z: Tensor) -> Tensor:
    """D = sup_x |#{z_i ≤ x}/d − Φ(x)| of every row of z [n, d]; NaN for a row that holds one."""
    d = z.shape[1]
    # NumPy sorts single precision with vector instructions, several times faster than torch on a CPU.
    ascending = torch.from_numpy(np.sort(z.detach().numpy(), axis=1)) if z.device.type == "cpu" else z.sort(1)[0]
    phi = ascending.mul_(math.sqrt(0.5)).erf_().add_(1).mul_(0.5)
    steps = torch.arange(1, d + 1, device=z.device, dtype=torch.float64).div_(d).to(z.dtype)
    phi.sub_(steps)
    return torch.maximum(-phi.amin(1), phi.amax(1) + 1 / d)  # aminmax takes twenty times as long along an axis


@lru_cache(maxsize=64)
def critical(d: int, level: float) -> float:
    """The D at which p is `level`; about 1.358/√d at 0.05."""
    from scipy.stats import kstwo

    return float(kstwo.isf(level, d))
