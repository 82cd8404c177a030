"""A Kalman smoother that estimates DBCL's hidden updates from the sketches of many rounds.

A client sees Y_t = W_t S_t and knows S_t, for W [d_out, d_in] and S [d_in, s]. Two consecutive rounds show
almost nothing about W_t − W_{t+1} (DBCL's Theorem 1). But every step lies in the row space of S_tᵀ,

    W_{t+1} = W_t − U_t S_tᵀ,

so that T rounds give T·d_out·s equations for d_out·(d_in + (T − 1)·s) unknowns: the deficit is d_in − s
numbers a row for the whole run, and the likeliest solution spreads it over all rounds. Rows are
independent and share one covariance, so one pass serves them all:

    prior      rows of W_0 ~ N(0, τ² I)
    transition w_{t+1} = w_t − S_t u_t − v_t,  u_t ~ N(own_t, σ_t² I) inside, v_t ~ N(0, ρ_t² I) outside
               the row space: rounds that the attacker missed (E[S Sᵀ] = I), or a server's Adam
    observed   y_t = S_tᵀ w_t, without noise

Forward, the Kalman filter; backward, the adjoint r_t = P_{t+1|t}⁻¹ (w_{t+1|T} − w_{t+1|t}) of the
Rauch–Tung–Striebel smoother, by the recursion of the disturbance smoother (Koopman 1993, "Disturbance
smoother for state space models", Biometrika 80), which needs no inverse of P:

    F = SᵀPS = L Lᵀ,  G = L⁻¹ SᵀP,  e = L⁻¹(y − Sᵀw)       w ← w + Gᵀe,  P ← P − GᵀG
    r_{t−1} = r_t + S L⁻ᵀ (e − G r_t)                       û_t = own_t − σ_t² S_tᵀ r_t,  v̂_t = −ρ_t² r_t

Cost a round: 2·d_in²·s + O(d_in·s²) multiplications in float64; memory: `window` times s·(d_in + s)
numbers. The filter runs through all rounds, and alone gives the likeliest W_t (`filtered`); each smoothed
round looks ahead at least window/2 rounds (fewer only at the end).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from fedarena.defenses.dbcl.sketch import Sketch

WINDOW = 60
FLOOR = 1e-5
"""Smallest standard deviation of a step, as a share of τ: W has single precision, and F must be regular."""


@dataclass(frozen=True)
class Step:
    """One round that the attacker saw, and what it expects of the step that follows.

    Attributes:
        sketch: S_t, of size s.
        seen: Y_t = W_t S_t, [rows, s].
        own: the attacker's own share of U_t, [rows, s].
        inside: σ_t, standard deviation of an entry of the others' share of U_t.
        outside: ρ_t, standard deviation of an entry of W_t's change outside the row space of S_tᵀ before the next
            round that the attacker saw.
    """

    sketch: Sketch
    seen: Tensor
    own: Tensor
    inside: float
    outside: float = 0.0


@dataclass(frozen=True)
class Move:
    """The estimated step after one round: W_t − W_{t+1} = inside·S_tᵀ + outside.

    Attributes:
        inside: Û_t, own share included, [rows, s] (float64).
        outside: V̂_t, [rows, d_in] (float64).
    """

    inside: Tensor
    outside: Tensor


def prior_deviation(sketch: Sketch, seen: Tensor) -> float:
    """τ from one broadcast: E‖W S‖² = τ²·d_out·‖S‖² for independent entries."""
    return float((seen.double().square().sum() / (seen.shape[0] * sketch.squared_norm())).sqrt())


def smooth(
    steps: Sequence[Step], wanted: Collection[int], window: int = WINDOW, tau: float | None = None
) -> list[Move]:
    """The likeliest steps of one layer, given all of its sketches.

    Args:
        steps: the rounds seen, in order.
        wanted: which of them (by position, the last excluded: nothing is seen after it) to estimate.
        window: rounds held in memory at once, at least 2.
        tau: τ; by default from the first sketch.

    Returns:
        One move for each position in `wanted`, in increasing order.
    """
    order = sorted(set(wanted))
    if order and not 0 <= order[0] <= order[-1] < len(steps) - 1:
        raise ValueError(f"wanted positions must lie in 0..{len(steps) - 2}, got {order}")
    if window < 2:
        raise ValueError(f"window must be at least 2, got {window}")
    tau = prior_deviation(steps[0].sketch, steps[0].seen) if tau is None else tau
    forward, held, first = _Filter(steps[0], tau), list[_Gain](), 0
    moves: dict[int, Move] = {}
    for t, step in enumerate(steps):
        if len(moves) == len(order):
            break
        held.append(forward.observe(step))
        forward.move(step)
        last = t == len(steps) - 1
        if last or len(held) == window:
            done = len(held) if last else window // 2
            targets = {k - first for k in order if first <= k < first + done}
            moves |= {first + k: move for k, move in _backward(held, targets, tau).items()}
            held, first = held[done:], first + done
    return [moves[k] for k in order]


def filtered(steps: Sequence[Step], wanted: Collection[int], tau: float | None = None) -> list[Tensor]:
    """The likeliest W_t of one layer, each given the sketches up to its own round.

    Args:
        steps: the rounds seen, in order.
        wanted: which of them (by position).
        tau: τ; by default from the first sketch.

    Returns:
        [rows, d_in] (float64) for each position in `wanted`, in increasing order.
    """
    forward, means = _Filter(steps[0], prior_deviation(steps[0].sketch, steps[0].seen) if tau is None else tau), []
    for t, step in enumerate(steps[: max(wanted) + 1]):
        forward.observe(step)
        if t in wanted:
            means.append(forward.mean.T)
        forward.move(step)
    return means


@dataclass(frozen=True)
class _Gain:
    """The values of one round that the backward pass needs; columns of S that hold no coordinate are left out.

    Attributes:
        step: the round.
        filled: the columns of S that hold a coordinate, [s'].
        root: L, [s', s'].
        gain: G, [s', d].
        innovation: e, [s', rows].
    """

    step: Step
    filled: Tensor
    root: Tensor
    gain: Tensor
    innovation: Tensor


class _Filter:
    """The Kalman filter: mean [d, rows] and shared covariance [d, d] of w_t."""

    def __init__(self, first: Step, tau: float) -> None:
        d, rows = first.sketch.coordinates, first.seen.shape[0]
        self.mean = torch.zeros(d, rows, dtype=torch.float64)
        self.cov = torch.eye(d, dtype=torch.float64) * tau**2
        self.tau = tau

    def observe(self, step: Step) -> _Gain:
        """Condition on y_t = S_tᵀ w_t."""
        sketch = step.sketch
        filled = sketch.counts().nonzero().squeeze(1)
        cross = sketch.apply(self.cov)[:, filled]  # P S
        root = torch.linalg.cholesky(sketch.apply(cross.T)[:, filled])
        gain = torch.linalg.solve_triangular(root, cross.T, upper=False)
        surprise = (step.seen.double() - sketch.apply(self.mean.T))[:, filled].T
        innovation = torch.linalg.solve_triangular(root, surprise, upper=False)
        self.mean = self.mean + gain.T @ innovation
        self.cov.addmm_(gain.T, gain, alpha=-1)
        return _Gain(step, filled, root, gain, innovation)

    def move(self, step: Step) -> None:
        """w ← w − S u − v."""
        sketch, d = step.sketch, self.cov.shape[0]
        self.mean = self.mean - sketch.expand(step.own.double()).T
        inside, outside = _variances(step, self.tau)
        # S Sᵀ couples the coordinates that share a column of S.
        self.cov.add_(sketch.expand(sketch.apply(torch.eye(d, dtype=torch.float64))), alpha=inside)
        self.cov.diagonal().add_(outside)


def _variances(step: Step, tau: float) -> tuple[float, float]:
    """(σ², ρ²), at least the size of rounding errors, also for a step that is expected to move nothing."""
    floor = (FLOOR * tau) ** 2
    return max(step.inside**2, floor if step.outside**2 < floor else 0.0), step.outside**2


def _backward(held: Sequence[_Gain], targets: Collection[int], tau: float) -> dict[int, Move]:
    """The moves after the held rounds `targets`, given everything up to the last held round."""
    moves: dict[int, Move] = {}
    if not targets:
        return moves
    r = torch.zeros_like(held[-1].gain.T @ held[-1].innovation)
    for k in range(len(held) - 1, min(targets) - 1, -1):
        gain = held[k]
        step, sketch = gain.step, gain.step.sketch
        if k in targets:
            inside, outside = _variances(step, tau)
            moves[k] = Move(step.own.double() - inside * sketch.apply(r.T), -outside * r.T)
        weights = torch.linalg.solve_triangular(gain.root.T, gain.innovation - gain.gain @ r, upper=True)
        full = torch.zeros(sketch.size, r.shape[1], dtype=torch.float64)
        full[gain.filled] = weights
        r = r + sketch.expand(full.T).T
    return moves
