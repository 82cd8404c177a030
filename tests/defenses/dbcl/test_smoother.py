"""The smoother against a dense least-squares solution of the whole system."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fedarena.defenses.dbcl.sketch import DISTRIBUTIONS, draw
from fedarena.defenses.dbcl.smoother import Move, Step, filtered, prior_deviation, smooth

TAU = 0.7


def solved(steps: Sequence[Step], tau: float) -> tuple[Tensor, list[int], Tensor]:
    """A pseudo-inverse of all equations at once: the likeliest unknowns, where each starts, and W after the last step.

    Unknowns, scaled to variance 1: w_0/τ, then (u_t − own_t)/σ_t and v_t/ρ_t of every round.
    """
    d = steps[0].sketch.coordinates
    widths = [d] + [w for step in steps[:-1] for w in (step.sketch.size, d)]
    starts = torch.tensor([0, *widths]).cumsum(0).tolist()
    rows, known = [], []
    state, offset = torch.zeros(d, starts[-1], dtype=torch.float64), torch.zeros(d, steps[0].seen.shape[0]).double()
    state[:, :d] = torch.eye(d) * tau
    for t, step in enumerate(steps):
        S = step.sketch.dense()
        rows.append(S.T @ state)
        known.append(step.seen.T - S.T @ offset)
        if t < len(steps) - 1:
            inside, outside = starts[2 * t + 1], starts[2 * t + 2]
            state = state.clone()
            state[:, inside:outside] -= step.inside * S
            state[:, outside : outside + d] -= step.outside * torch.eye(d, dtype=torch.float64)
            offset = offset - S @ step.own.T
    z = torch.linalg.pinv(torch.cat(rows), rtol=1e-11) @ torch.cat(known)
    return z, starts, (state @ z + offset).T


def least_squares(steps: Sequence[Step], tau: float) -> list[Move]:
    """The likeliest moves after each step but the last."""
    (z, starts, _), moves = solved(steps, tau), []
    for t, step in enumerate(steps[:-1]):
        inside, outside, end = starts[2 * t + 1 : 2 * t + 4]
        u = step.own + step.inside * z[inside:outside].T
        moves.append(Move(u, step.outside * z[outside:end].T))
    return moves


def simulate(
    seed: int, d: int, sizes: Sequence[int], law: str, missed: Sequence[int], rows: int = 3, ratio: float = 0.05
) -> tuple[list[Step], list[Tensor]]:
    """A random run: what was seen, and the true U_t of every round seen."""
    g = torch.Generator().manual_seed(seed)
    w = TAU * torch.randn(rows, d, generator=g).double()
    steps, truth = [], []
    for t, (s, gap) in enumerate(zip(sizes, missed, strict=True)):
        sketch = draw(seed, t, d, s, law)
        scale = ratio * (1 + t % 3)
        own, others = (scale * torch.randn(rows, s, generator=g).double() for _ in range(2))
        steps.append(Step(sketch, sketch.apply(w), own, scale, scale * gap**0.5))
        drift = scale * gap**0.5 * torch.randn(rows, d, generator=g).double()
        truth.append(own + others)
        w = w - sketch.expand(own + others) - drift
    return steps, truth


def assert_close(ours: Sequence[Move], reference: Sequence[Move]) -> None:
    """Within 1e-6 of the reference's norm, inside and outside."""
    for a, b in zip(ours, reference, strict=True):
        for x, y in ((a.inside, b.inside), (a.outside, b.outside)):
            assert (x - y).norm() <= 1e-6 * (y.norm() + 1e-9)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**20),
    d=st.integers(3, 14),
    rounds=st.integers(2, 9),
    ratio=st.sampled_from([0.25, 0.5, 0.8]),
    law=st.sampled_from(list(DISTRIBUTIONS)),
    gaps=st.booleans(),
)
def test_equals_least_squares(seed: int, d: int, rounds: int, ratio: float, law: str, gaps: bool) -> None:
    sizes = [max(1, round(d * ratio) + t % 2) for t in range(rounds)]  # s varies, and rarely divides d
    missed = [(seed + t) % 3 if gaps else 0 for t in range(rounds)]
    steps, _ = simulate(seed, d, sizes, law, missed)
    assert_close(smooth(steps, range(rounds - 1), tau=TAU), least_squares(steps, TAU))


@pytest.mark.parametrize("law", list(DISTRIBUTIONS))
@pytest.mark.parametrize("gaps", [[0] * 7, [0, 2, 0, 1, 0, 0, 3]])
def test_the_filter_s_model_equals_least_squares_up_to_its_round(law: str, gaps: list[int]) -> None:
    steps, _ = simulate(6, 11, [5, 6, 5, 6, 5, 6, 5], law, gaps)
    for t, found in zip((0, 3, 6), filtered(steps, (6, 0, 3), TAU), strict=True):
        reference = solved(steps[: t + 1], TAU)[2]
        assert (found - reference).norm() <= 1e-6 * reference.norm()


def test_the_filter_s_model_does_not_change_when_it_goes_on() -> None:
    steps, _ = simulate(7, 10, [5] * 6, "countsketch", [0] * 6)
    early, _ = filtered(steps, (2, 5))
    assert torch.equal(early, filtered(steps[:3], (2,))[0])


def test_adam_moves_outside_the_row_space_equal_least_squares() -> None:
    steps, _ = simulate(5, 10, [5] * 8, "countsketch", [0] * 8)
    steps = [Step(s.sketch, s.seen, s.own * 0, 0.0, 0.1) for s in steps]
    ours = smooth(steps, range(7), tau=TAU)
    assert_close(ours, least_squares(steps, TAU))
    assert all(float(m.inside.abs().max()) == 0 for m in ours)


@pytest.mark.parametrize("law", list(DISTRIBUTIONS))
def test_finds_the_hidden_steps(law: str) -> None:
    steps, truth = simulate(1, 64, [32] * 60, law, [0] * 60, rows=20, ratio=0.01)
    estimates = [k.sketch.expand(m.inside) for k, m in zip(steps[:-1], smooth(steps, range(59)), strict=True)]
    updates = [k.sketch.expand(u) for k, u in zip(steps[:-1], truth[:-1], strict=True)]
    pairs = zip(estimates, updates, strict=True)
    cosines = [float(torch.cosine_similarity(a.flatten(), b.flatten(), dim=0)) for a, b in pairs]
    assert torch.tensor(cosines).median() > 0.99


@pytest.mark.parametrize(("position", "last"), [(3, 8), (6, 12), (9, 16), (27, 30)])
def test_each_window_looks_half_its_length_ahead(position: int, last: int) -> None:
    """With windows of 8 moved by 4: exactly as if nothing had followed the window."""
    steps, _ = simulate(2, 12, [6] * 30, "countsketch", [0] * 30)
    windowed = smooth(steps, [position], window=8)
    assert_close(windowed, smooth(steps[:last], [position]))
    if last < 30:
        assert (windowed[0].inside - smooth(steps, [position])[0].inside).norm() > 1e-9


def test_returns_the_wanted_rounds_in_order() -> None:
    steps, _ = simulate(3, 12, [6] * 20, "balanced", [0] * 20)
    everything = smooth(steps, range(19), window=6)
    assert_close(smooth(steps, [14, 2, 7], window=6), [everything[k] for k in (2, 7, 14)])
    assert smooth(steps, []) == []


def test_own_share_is_known_input() -> None:
    """A run in which nobody else takes part is known exactly, whatever the sketches hide."""
    steps, _ = simulate(4, 12, [6] * 5, "countsketch", [0] * 5)
    w, alone = steps[0].seen.new_ones(3, 12), []
    for step in steps:
        alone.append(Step(step.sketch, step.sketch.apply(w), step.own, 0.0))
        w = w - step.sketch.expand(step.own)
    for move, step in zip(smooth(alone, range(4)), alone[:-1], strict=True):
        assert (move.inside - step.own).norm() < 1e-5 * step.own.norm()


def test_prior_deviation_is_unbiased() -> None:
    w = 0.3 * torch.randn(400, 30, generator=torch.Generator().manual_seed(0))
    for law in DISTRIBUTIONS:
        sketch = draw(0, 0, 30, 7, law)
        assert prior_deviation(sketch, sketch.apply(w)) == pytest.approx(0.3, rel=0.05)


@pytest.mark.parametrize("wanted", [[-1], [4], [0, 9]])
def test_refuses_positions_without_a_successor(wanted: list[int]) -> None:
    steps, _ = simulate(0, 6, [3] * 5, "countsketch", [0] * 5)
    with pytest.raises(ValueError, match=r"0\.\.3"):
        smooth(steps, wanted)


def test_refuses_a_window_of_one() -> None:
    steps, _ = simulate(0, 6, [3] * 5, "countsketch", [0] * 5)
    with pytest.raises(ValueError, match="at least 2"):
        smooth(steps, [0], window=1)
