"""L-BFGS from many starts at once, for functions that are cheapest to evaluate in batches.

Rows of one [R, D] tensor are R independent minimisations of the same function (Nocedal & Wright 2006,
Algorithm 7.4: two-loop recursion). Every iteration makes ONE batched evaluation for all rows that are
still moving; the line search is folded into it. A row whose trial point fails the sufficient decrease
(Armijo) condition

    f(x + t·d) ≤ f(x) + c₁·t·gᵀd

shortens its step by quadratic interpolation and tries again in the next evaluation, while the other
rows move on. A pair (s, y) is remembered only where sᵀy > ε·‖s‖·‖y‖; a row whose accepted step met no
positive curvature keeps its memory and doubles its next step instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

Evaluate = Callable[[Tensor], tuple[Tensor, Tensor]]
"""Points [r, D] → (values [r], gradients [r, D]), each row on its own; r may shrink from call to call."""

ARMIJO, CURVATURE = 1e-4, 1e-8
SHRINKS = 20
"""Rejected trials in a row after which a direction is given up."""


@dataclass(frozen=True)
class Minima:
    """Where the rows ended.

    Attributes:
        points: [R, D], the best point of each row (its start, if nothing better was finite).
        values: [R], f at `points`; not finite where the start was not.
        evaluations: gradient evaluations spent, summed over rows.
    """

    points: Tensor
    values: Tensor
    evaluations: int


def minimise(
    evaluate: Evaluate,
    start: Tensor,
    iterations: int,
    history: int = 10,
    target: float = float("-inf"),
    gradient_tolerance: float = 0.0,
    patience: int | None = None,
    progress: float = 1e-3,
) -> Minima:
    """Minimise from every row of `start`.

    Args:
        evaluate: the function and its gradient, batched over rows.
        start: [R, D].
        iterations: batched evaluations after the first one, at most.
        history: pairs (s, y) remembered per row.
        target: stop all rows as soon as one of them reaches this value.
        gradient_tolerance: a row whose gradient's largest entry is at most this has converged and freezes.
        patience: a row that improved by less than the share `progress` over this many iterations freezes.
            None: never.
        progress: see `patience`.
    """
    value, gradient = evaluate(start)
    spent = start.shape[0]
    state = _Rows(start, value, gradient, history, gradient_tolerance)
    marked = state.value.clone()
    for i in range(iterations):
        rows = state.moving.nonzero().squeeze(1)
        if rows.numel() == 0 or bool((state.value <= target).any()):
            break
        trial = state.trial(rows)
        state.step(rows, trial, *evaluate(trial))
        spent += rows.numel()
        if patience is not None and (i + 1) % patience == 0:
            state.moving &= state.value < (1 - progress) * marked
            marked = state.value.clone()
    return Minima(state.x, state.value, spent)


class _Rows:
    """The state of all rows; `step` takes one trial of each row that is moving."""

    def __init__(self, x: Tensor, value: Tensor, gradient: Tensor, history: int, tolerance: float) -> None:
        r, d = x.shape
        self.x, self.value, self.gradient, self.tolerance = x.clone(), value.clone(), gradient.clone(), tolerance
        self.s, self.y = x.new_zeros(history, r, d), x.new_zeros(history, r, d)
        self.rho = x.new_zeros(history, r)  # 1/sᵀy; 0 marks an empty slot, which then contributes nothing
        self.gamma = x.new_ones(r)  # sᵀy/yᵀy of the newest pair
        finite = torch.isfinite(value) & torch.isfinite(gradient).all(1)
        self.moving = finite & (gradient.abs().amax(1) > tolerance)
        self.direction = -self.gradient
        self.slope = -_dot(gradient, gradient)
        self.length = _unit_step(gradient)
        self.rejected = torch.zeros(r, dtype=torch.int64, device=x.device)

    def trial(self, rows: Tensor) -> Tensor:
        return self.x[rows] + self.length[rows, None] * self.direction[rows]

    def step(self, rows: Tensor, trial: Tensor, value: Tensor, gradient: Tensor) -> None:
        """Judge the trials: accepted rows move and turn, rejected rows shorten."""
        f, slope, t = self.value[rows], self.slope[rows], self.length[rows]
        finite = torch.isfinite(value) & torch.isfinite(gradient).all(1)
        good = finite & (value <= f + ARMIJO * t * slope) & (value < f)
        self._shorten(rows[~good], value[~good])
        rows, trial, value, gradient = rows[good], trial[good], value[good], gradient[good]
        if rows.numel():
            curved = self._remember(rows, trial - self.x[rows], gradient - self.gradient[rows])
            self.x[rows], self.value[rows], self.gradient[rows] = trial, value, gradient
            self.rejected[rows] = 0
            self.moving[rows] = gradient.abs().amax(1) > self.tolerance
            self.length[rows] = torch.where(curved, 1.0, 2 * t[good])
            self._turn(rows)

    def _shorten(self, rows: Tensor, value: Tensor) -> None:
        """Quadratic interpolation, kept within [0.1, 0.5] of the old step; after `SHRINKS`, forget and go downhill."""
        if rows.numel() == 0:
            return
        t, rise = self.length[rows], self.length[rows] * self.slope[rows]
        factor = (-rise / (2 * (value - self.value[rows] - rise))).nan_to_num(0.1, 0.1, 0.1).clamp(0.1, 0.5)
        self.length[rows] = t * factor
        self.rejected[rows] += 1
        lost = rows[self.rejected[rows] >= SHRINKS]
        if lost.numel():
            fresh = self.rho[:, lost].eq(0).all(0)  # already going straight downhill: nothing left to try
            self.moving[lost[fresh]] = False
            self.rho[:, lost] = 0
            self.gamma[lost] = 1
            self.rejected[lost] = 0
            self._downhill(lost)

    def _remember(self, rows: Tensor, s: Tensor, y: Tensor) -> Tensor:
        """Push (s, y) where the curvature is positive; returns where it is."""
        sy, yy = _dot(s, y), _dot(y, y)
        curved = sy > CURVATURE * (_dot(s, s) * yy).sqrt()
        kept = rows[curved]
        if kept.numel():
            for memory, new in ((self.s, s), (self.y, y)):
                memory[:, kept] = torch.cat([memory[1:, kept], new[curved][None]])
            self.rho[:, kept] = torch.cat([self.rho[1:, kept], 1 / sy[curved][None]])
            self.gamma[kept] = sy[curved] / yy[curved]
        return curved

    def _turn(self, rows: Tensor) -> None:
        """The quasi-Newton direction −H·g by the two-loop recursion."""
        q, alphas = self.gradient[rows], []
        s, y, rho = self.s[:, rows], self.y[:, rows], self.rho[:, rows]
        used = [j for j in range(s.shape[0]) if bool(rho[j].any())]
        for j in reversed(used):
            alphas.append(rho[j] * _dot(s[j], q))
            q = q - alphas[-1][:, None] * y[j]
        q = self.gamma[rows, None] * q
        for j in used:
            beta = rho[j] * _dot(y[j], q)
            q = q + (alphas.pop() - beta)[:, None] * s[j]
        self.direction[rows], self.slope[rows] = -q, -_dot(self.gradient[rows], q)
        # The matrix is positive definite in exact arithmetic; rounding can still turn a direction uphill.
        self._downhill(rows[~(self.slope[rows] < 0)])

    def _downhill(self, rows: Tensor) -> None:
        """Steepest descent with a step of length one."""
        g = self.gradient[rows]
        self.direction[rows], self.slope[rows], self.length[rows] = -g, -_dot(g, g), _unit_step(g)


def _dot(a: Tensor, b: Tensor) -> Tensor:
    """Row by row: [..., D], [..., D] → [...]."""
    return (a * b).sum(-1)


def _unit_step(gradient: Tensor) -> Tensor:
    """The multiple of the gradient that has length one."""
    return 1 / gradient.norm(dim=1).clamp_min(torch.finfo(gradient.dtype).tiny)
