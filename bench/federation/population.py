"""Samples of an attacker's own: half of the held-out data, on which no client trained.

The other half provides the non-members of membership inference, so that the attacker owns none of them. The halves
depend on the seed alone.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fedarena.contracts.view import Population
from fedarena.core.rng import Rng
from fedarena.problem.problem import Problem


def halves(problem: Problem, seed: int) -> tuple[Tensor, Tensor]:
    """Indices of held-out samples: the attacker's, and the non-members'; ascending."""
    n = len(problem.y_test)
    order = torch.randperm(n, generator=Rng(seed).child("population").torch()).to(problem.device)
    return order[: n // 2].sort().values, order[n // 2 :].sort().values


def drawn(pool: Tensor, n: int, generator: torch.Generator) -> Tensor:
    """Draw n of the indices in `pool` without replacement, or with replacement if there are fewer than n."""
    if n <= len(pool):
        return pool[torch.randperm(len(pool), generator=generator)[:n].to(pool.device)]
    return pool[torch.randint(len(pool), (n,), generator=generator).to(pool.device)]


def population(problem: Problem, seed: int) -> Population:
    """The attacker's half."""
    mine = halves(problem, seed)[0]
    known = {name: held[mine] for name, (_, held) in problem.attributes.items()}
    return Population(problem.x_test[mine].float() / problem.scale, problem.y_test[mine], known)
