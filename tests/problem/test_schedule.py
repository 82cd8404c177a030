"""Shares of a schedule's rounds."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from fedarena.problem.schedule import Schedule


@pytest.mark.parametrize("rounds", [1, 7, 50, 100, 1500])
def test_shares_in_hundredths_are_those_of_exact_arithmetic(rounds: int) -> None:
    schedule = Schedule(rounds=rounds)
    for hundredths in range(101):
        exact = Fraction(hundredths * rounds, 100)
        assert math.ceil(schedule.at(hundredths / 100)) == math.ceil(exact)
        assert schedule.at(hundredths / 100) == pytest.approx(float(exact))
