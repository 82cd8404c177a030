"""The test of scores: what it calls a finding, and what it must not depend on."""

from __future__ import annotations

import pytest

from fedarena.board.gate.contrast import Contrast
from fedarena.board.gate.judge import judge
from fedarena.core.rng import Rng

SEEDS = (0, 1, 2)


def contrast(place: int, base: list[float], new: list[float], effect: float = 0.1, kind: str = "labels") -> Contrast:
    return Contrast(
        place, kind=kind, axis="privacy", seeds=tuple(range(len(base))), base=tuple(base), new=tuple(new), effect=effect
    )


def quiet(n: int, noise: float = 0.01) -> list[Contrast]:
    """Contrasts that changed by noise alone."""
    drawn = 0.5 + noise * Rng(3).numpy().normal(size=(n, 2, 3))
    return [contrast(100 + i, *drawn[i].tolist()) for i in range(n)]


def test_a_lucky_row_is_found_among_quiet_scores_alone() -> None:
    flipped = contrast(0, [1.0, 1.0, 1.0], [0.0, 0.0, 0.0])
    assert judge([flipped, *quiet(40)], 0.05)[0].outcome == "loss"
    # The same among scores that leap: three in a row come by chance.
    g = Rng(4).numpy()
    tossed = (g.random((40, 2, 3)) < 0.5).astype(float)
    leaping = [contrast(i + 1, *tossed[i].tolist()) for i in range(40)]
    assert judge([flipped, *leaping], 0.05)[0].outcome == "noise"


def test_leaps_of_unchanged_scores_count_too() -> None:
    flipped = contrast(0, [1.0, 1.0, 1.0], [0.0, 0.0, 0.0])
    still = [contrast(200 + i, [0.0, 1.0, 0.0], [0.0, 1.0, 0.0]) for i in range(40)]
    assert judge([flipped, *quiet(20)], 0.05)[0].outcome == "loss"
    assert judge([flipped, *quiet(20), *still], 0.05)[0].outcome == "noise"


def test_a_significant_but_small_change_is_no_finding() -> None:
    moved = contrast(0, [0.5, 0.51, 0.49], [0.41, 0.42, 0.4])
    verdict = judge([moved, *quiet(10)], 0.05)[0]
    assert verdict.outcome == "noise"
    assert verdict.p is not None
    assert verdict.p < 0.05
    smaller = contrast(0, [0.5, 0.51, 0.49], [0.41, 0.42, 0.4], effect=0.05)
    assert judge([smaller, *quiet(10)], 0.05)[0].outcome == "loss"


def test_a_large_but_insignificant_change_is_no_finding() -> None:
    verdict = judge([contrast(0, [0.9, 0.1, 0.5], [0.2, 0.3, 0.1]), *quiet(40)], 0.05)[0]
    assert verdict.outcome == "noise"
    assert verdict.half is not None
    assert verdict.half > 0.3


def test_losses_only_ignores_gains_and_sees_losses_better() -> None:
    up = contrast(0, [0.2, 0.21, 0.22], [0.6, 0.61, 0.6])
    down = contrast(1, [0.6, 0.61, 0.6], [0.2, 0.21, 0.22])
    both = judge([up, down, *quiet(40)], 0.05)
    assert [v.outcome for v in both[:2]] == ["gain", "loss"]
    losses = judge([up, down, *quiet(40)], 0.05, losses_only=True)
    assert [v.outcome for v in losses[:2]] == ["noise", "loss"]
    assert losses[0].p == 1
    assert losses[1].p is not None
    assert both[1].p is not None
    assert losses[1].p == pytest.approx(both[1].p / 2, rel=0.1)


def test_identical_scores_are_not_tested_and_cost_no_power() -> None:
    moved = contrast(0, [0.5, 0.51, 0.49], [0.3, 0.31, 0.29])
    still = [contrast(500 + i, [0.5, 0.52, 0.5], [0.5, 0.52, 0.5]) for i in range(400)]
    few = judge([moved, *quiet(20)], 0.05)[0]
    many = judge([moved, *quiet(20), *still], 0.05)
    assert many[0].outcome == few.outcome == "loss"
    assert all(v.outcome == "identical" and v.p is None for v in many[21:])


def test_one_seed_is_never_called_sure() -> None:
    moved, still, nudged = (contrast(i, [0.5], [b]) for i, b in enumerate((0.3, 0.5, 0.45)))
    assert [v.outcome for v in judge([moved, still, nudged], 0.05)] == ["unknown", "identical", "noise"]
    assert all(v.p is None and v.half is None for v in judge([moved, still, nudged], 0.05))


def test_small_kinds_are_joined() -> None:
    """A kind of one score has no noise of its own to learn from: it is judged by the others of its axis."""
    lone = contrast(0, [0.5, 0.5, 0.5], [0.3, 0.31, 0.29], kind="property")
    alone = judge([lone], 0.05)[0]
    joined = judge([lone, *quiet(40)], 0.05)[0]
    noisy = judge([lone, *quiet(40, noise=0.2)], 0.05)[0]
    assert alone.half is not None
    assert joined.half is not None
    assert noisy.half is not None
    assert joined.half < alone.half < noisy.half
