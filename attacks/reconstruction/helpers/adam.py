"""Adam (Kingma & Ba 2015, Algorithm 1) from many starts at once, with the steps of Geiping et al. (2020)."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from fedarena.attacks.reconstruction.helpers.lbfgs import Evaluate, Minima

BETAS, EPS = (0.9, 0.999), 1e-8


def steps(i: int, iterations: int) -> float:
    """Share of the learning rate: a factor 0.1 after each of 3/8, 5/8 and 7/8 of the iterations."""
    return 0.1 ** sum(i > share * iterations for share in (3 / 8, 5 / 8, 7 / 8))


def cosine(i: int, iterations: int) -> float:
    """Share of the learning rate: (1 + cos πi/n)/2, 1/1000 at the end (Loshchilov & Hutter 2017; one period)."""
    return 0.001 + 0.999 * (1 + math.cos(math.pi * i / iterations)) / 2


def adam(
    evaluate: Evaluate,
    start: Tensor,
    iterations: int,
    lr: float,
    target: float,
    first: int = 1,
    last: int | None = None,
    signed: bool = False,
    project: Callable[[Tensor], Tensor] = lambda x: x,
    decay: Callable[[int, int], float] = steps,
    changing: bool = False,
) -> Minima:
    """Adam from every row of `start`, lr·0.1 after 3/8, 5/8 and 7/8 of the iterations unless `decay` says otherwise.

    Rows that stop being finite are dropped; each row's best point is returned, or its last (`changing`). Stops as soon
    as one row reaches `target`.

    Args:
        iterations: the number of iterations for which the learning rate is scheduled.
        first, last: the iterations, counted from 1, that are run here; None: to the end.
        signed: the moments are those of the gradient's sign.
        project: projects points [r, D] onto the allowed set after every step; it may change them in place.
        decay: (i, iterations) → share of `lr`.
        changing: whether the function changes between iterations. Then values are not compared, and the last points
            are returned with the values before the last step.
    """
    x, m, v = start.clone(), torch.zeros_like(start), torch.zeros_like(start)
    best, best_value = start.clone(), start.new_full((start.shape[0],), torch.inf)
    spent, (b1, b2) = 0, BETAS
    for i in range(first, (last or iterations) + 1):
        value, gradient = evaluate(x)
        spent += x.shape[0]
        better = value < best_value  # false where not finite
        best, best_value = torch.where(better[:, None], x, best), torch.where(better, value, best_value)
        if target > -torch.inf and bool((best_value <= target).any()):
            break
        gradient, t = gradient.sign() if signed else gradient, i - first + 1
        m, v = b1 * m + (1 - b1) * gradient, b2 * v + (1 - b2) * gradient.square()
        rate = lr * decay(i, iterations)
        x = project(x - rate * (m / (1 - b1**t)) / ((v / (1 - b2**t)).sqrt() + EPS))
    return Minima(x, value, spent) if changing else Minima(best, best_value, spent)
