"""L-BFGS from many starts at once, for functions that are cheapest to evaluate in batches.

Rows of one [R, D] tensor are R independent minimisations of the same function. Every iteration makes
ONE batched evaluation for all rows that are still moving; the line search is folded into it. A row whose
trial point fails the sufficient decrease (Armijo) condition

    f(x + t·d) ≤ f(x) + c₁·t·gᵀd

shortens its step by quadratic interpolation and tries again in the next evaluation, while the other
rows move on. A pair (s, y) is remembered only where sᵀy > ε·‖s‖·‖y‖; a row whose accepted step met no
positive curvature keeps its memory and doubles its next step instead.

The direction −H·g comes from the compact form of H (Byrd, Nocedal & Schnabel 1994, Theorem 2.2), which
equals the usual two-loop recursion and takes a handful of batched operations whatever the history:
with S, Y the remembered pairs, R = triu(Sᵀ Y), E = diag(Sᵀ Y), γ = sᵀy/yᵀy of the newest pair and
p = R⁻¹ Sᵀ g,

    H g = γ·g + S·R⁻ᵀ((E + γ·Yᵀ Y) p − γ·Yᵀ g) − γ·Y p
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

Evaluate = Callable[[Tensor], tuple[Tensor, Tensor]]
"""Points [r, D] → (values [r], gradients [r, D]), each row on its own; r shrinks as rows stop."""

ARMIJO, CURVATURE = 1e-4, 1e-8
SHRINKS = 20
"""Rejected trials in a row after which a direction is given up."""
PATIENCE, PROGRESS = 100, 0.1
"""A row that loses less than this share of its value in this many iterations has stalled."""


@dataclass(frozen=True)
class Minima:
    """The end points of the rows.

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
    history: int = 20,
    target: float | None = None,
    gradient_tolerance: float = 0.0,
    race: Sequence[int] = (),
    patience: bool = False,
) -> Minima:
    """Minimise from every row of `start`.

    Args:
        evaluate: the function and its gradient, batched over rows.
        start: [R, D].
        iterations: batched evaluations after the first one, at most.
        history: pairs (s, y) remembered per row.
        target: stop all rows as soon as one of them reaches this value. None: never.
        gradient_tolerance: a row whose gradient's largest entry is at most this has converged and freezes.
        race: iterations after which the worse half of the rows still moving freezes.
        patience: freeze rows that have stalled; see `PATIENCE`.
    """
    value, gradient = evaluate(start)
    spent = start.shape[0]
    rows = _Rows(start, value, gradient, history, gradient_tolerance)
    marked = rows.value.clone()
    for i in range(1, iterations + 1):
        moving = rows.moving.nonzero().squeeze(1)
        if moving.numel() == 0 or (target is not None and bool((rows.value <= target).any())):
            break
        trial = rows.trial(moving)
        rows.step(moving, trial, *evaluate(trial))
        spent += moving.numel()
        if i in race:
            moving = rows.moving.nonzero().squeeze(1)
            order = rows.value[moving].argsort(stable=True)
            rows.moving[moving[order[(len(order) + 1) // 2 :]]] = False
        if patience and i % PATIENCE == 0:
            rows.moving &= rows.value < (1 - PROGRESS) * marked
            marked = rows.value.clone()
    return Minima(rows.x, rows.value, spent)


class _Rows:
    """The state of all rows; `step` takes one trial of each row that is moving."""

    def __init__(self, x: Tensor, value: Tensor, gradient: Tensor, history: int, tolerance: float) -> None:
        r = x.shape[0]
        self.x, self.value, self.gradient, self.tolerance = x.clone(), value.clone(), gradient.clone(), tolerance
        finite = torch.isfinite(value) & torch.isfinite(gradient).all(1)
        self.moving = finite & (gradient.abs().amax(1) > tolerance)
        self.memory = _Memory(x, history)
        self.direction = -gradient
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
        if rows.numel() == 0:
            return
        curved = self.memory.remember(rows, trial - self.x[rows], gradient - self.gradient[rows])
        self.x[rows], self.value[rows], self.gradient[rows] = trial, value, gradient
        self.rejected[rows] = 0
        self.moving[rows] = gradient.abs().amax(1) > self.tolerance
        self.length[rows] = torch.where(curved, 1.0, 2 * t[good])
        step = self.memory.times(rows, gradient)
        self.direction[rows], self.slope[rows] = -step, -_dot(gradient, step)
        # H is positive definite in exact arithmetic; rounding can still turn a direction uphill.
        self._restart(rows[~(self.slope[rows] < 0)])

    def _shorten(self, rows: Tensor, value: Tensor) -> None:
        """Quadratic interpolation, within [0.1, 0.5] of the old step; after `SHRINKS` of them, restart."""
        if rows.numel() == 0:
            return
        rise = self.length[rows] * self.slope[rows]
        factor = -rise / (2 * (value - self.value[rows] - rise))
        self.length[rows] *= factor.nan_to_num(0.1, 0.1, 0.1).clamp(0.1, 0.5)
        self.rejected[rows] += 1
        lost = rows[self.rejected[rows] >= SHRINKS]
        if lost.numel():
            self.moving[lost[self.memory.empty(lost)]] = False  # already straight downhill: nothing left to try
            self._restart(lost)

    def _restart(self, rows: Tensor) -> None:
        """Steepest descent with a step of length one and an empty memory."""
        if rows.numel() == 0:
            return
        g = self.gradient[rows]
        self.memory.forget(rows)
        self.direction[rows], self.slope[rows], self.length[rows] = -g, -_dot(g, g), _unit_step(g)
        self.rejected[rows] = 0


class _Memory:
    """The pairs of every row and their inner products, oldest first; in float64, where R is inverted.

    An empty slot is a pair of zero vectors with R_jj = 1, which contributes nothing.
    """

    def __init__(self, x: Tensor, history: int) -> None:
        r, d = x.shape
        self.s = x.new_zeros(r, history, d, dtype=torch.float64)
        self.y = torch.zeros_like(self.s)
        self.sy = torch.eye(history, dtype=torch.float64, device=x.device).repeat(r, 1, 1)  # R, upper triangle
        self.yy = torch.zeros_like(self.sy)
        self.e = self.s.new_zeros(r, history)  # diag of R, 0 in empty slots
        self.gamma = self.s.new_ones(r)

    def empty(self, rows: Tensor) -> Tensor:
        return self.e[rows].eq(0).all(1)

    def forget(self, rows: Tensor) -> None:
        for t in (self.s, self.y, self.yy, self.e):
            t[rows] = 0
        self.sy[rows] = torch.eye(self.sy.shape[1], dtype=torch.float64, device=self.sy.device)
        self.gamma[rows] = 1

    def remember(self, rows: Tensor, s: Tensor, y: Tensor) -> Tensor:
        """Push (s, y), [r, D] each, where the curvature is positive; returns where that is."""
        s, y = s.double(), y.double()
        sy, yy = _dot(s, y), _dot(y, y)
        curved = sy > CURVATURE * (_dot(s, s) * yy).sqrt()
        rows, s, y, sy, yy = rows[curved], s[curved], y[curved], sy[curved], yy[curved]
        if rows.numel():
            old_s, old_y = self.s[rows, 1:], self.y[rows, 1:]
            to_s, to_y = (old_s @ y[..., None]).squeeze(-1), (old_y @ y[..., None]).squeeze(-1)
            self.s[rows] = torch.cat([old_s, s[:, None]], 1)
            self.y[rows] = torch.cat([old_y, y[:, None]], 1)
            self.e[rows] = torch.cat([self.e[rows, 1:], sy[:, None]], 1)
            self.sy[rows] = _bordered(self.sy[rows, 1:, 1:], to_s, torch.zeros_like(to_s), sy)
            self.yy[rows] = _bordered(self.yy[rows, 1:, 1:], to_y, to_y, yy)
            self.gamma[rows] = sy / yy
        return curved

    def times(self, rows: Tensor, g: Tensor) -> Tensor:
        """H g for these rows, [r, D]."""
        s, y, r, gamma = self.s[rows], self.y[rows], self.sy[rows], self.gamma[rows, None, None]
        column = g.double()[..., None]
        p = torch.linalg.solve_triangular(r, s @ column, upper=True)
        inner = self.e[rows][..., None] * p + gamma * (self.yy[rows] @ p - y @ column)
        q = torch.linalg.solve_triangular(r.mT, inner, upper=False)
        out: Tensor = gamma * column + s.mT @ q - gamma * (y.mT @ p)
        return out.squeeze(-1).to(g)


def _bordered(block: Tensor, column: Tensor, row: Tensor, corner: Tensor) -> Tensor:
    """[[block, column], [row, corner]] for a batch."""
    top = torch.cat([block, column[..., None]], 2)
    bottom = torch.cat([row, corner[:, None]], 1)
    return torch.cat([top, bottom[:, None]], 1)


def _dot(a: Tensor, b: Tensor) -> Tensor:
    """Row by row: [..., D], [..., D] → [...]."""
    return (a * b).sum(-1)


def _unit_step(gradient: Tensor) -> Tensor:
    """The multiple of the gradient that has length one."""
    length: Tensor = torch.linalg.vector_norm(gradient, dim=1)
    return length.clamp_min(torch.finfo(gradient.dtype).tiny).reciprocal()
