"""Random directions that two parties share by sharing a 4-byte seed, and Stein's gradient estimate from them (BAFFLE,
Feng et al. 2023, Sections 2 and 3.2).

    δ_k = σ z_k,  z_k ~ N(0, I_n)                                                  k = 1 … K
    ĝ = (1/K) Σ_k δ_k ΔL_k / σ² = (1/K) Σ_k z_k ΔL_k / σ                           forward differences (Eq. 6)

Central differences are twice as long: ĝ takes ΔL_k / 2 in their place.

Both ends draw the z_k one by one, in order, from a generator of their own, so that K may differ between them: the
shorter list is a prefix of the longer one. Nothing but the seed has to be kept, and the memory taken does not grow
with K.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat

import torch
from torch import Tensor

from fedarena.core.errors import UserError

CHUNK_BYTES = 1 << 20
"""Bytes of directions that `stein` holds at once (at least one direction); they fit into a core's own cache."""


def directions(seed: int, n: int) -> Iterator[Tensor]:
    """z_1, z_2, … without end: standard normal vectors [n], float32, on the CPU, each a tensor of its own.

    The same seed gives the same bits where torch draws by the same code: with AVX2 or AVX-512 they agree, a CPU without
    either rounds some entries otherwise (measured: 38 % of them, by up to 2e-6).

    Args:
        seed: 0 ≤ seed < 2³².
        n: length of a vector, the number of parameters.

    Raises:
        UserError: a seed that does not fit into 4 bytes.
    """
    generator = _generator(seed)
    return (torch.randn(n, generator=generator) for _ in repeat(None))


def stein(seed: int, n: int, differences: Tensor, sigma: float, chunk_bytes: int = CHUNK_BYTES) -> Tensor:
    """ĝ [n] = (1/K) Σ_k z_k ΔL_k / σ, with the directions of `directions(seed, n)` drawn again (Eq. 6).

    Args:
        differences: ΔL_1 … ΔL_K [K], halved for central differences.
        sigma: σ.
        chunk_bytes: directions held at once; at least one is.

    Returns:
        In double precision if the differences are, else in single; on the CPU.
    """
    generator = _generator(seed)
    weights = differences.detach().to("cpu", torch.promote_types(differences.dtype, torch.float32))
    weights = weights / (max(1, len(weights)) * sigma)
    total = torch.zeros(n, dtype=weights.dtype)
    chunk = torch.empty(max(1, chunk_bytes // (4 * n)), n)
    for some in weights.split(len(chunk)):
        for z in chunk[: len(some)]:
            torch.randn(n, generator=generator, out=z)
        total.addmv_(chunk[: len(some)].T.to(total), some)
    return total


def _generator(seed: int) -> torch.Generator:
    if not 0 <= seed < 1 << 32:
        raise UserError(f"the seed of perturbations is {seed}, allowed: 0 to {(1 << 32) - 1}, which is 4 bytes")
    return torch.Generator().manual_seed(seed)
