"""Known answers on whose uploads the server used."""

from __future__ import annotations

import pytest

from fedarena.federation.integrity import by_round, means_over_rounds, shares
from fedarena.federation.one_round import Verdict


def test_verdicts_by_hand() -> None:
    verdicts = [
        Verdict((0, 1, 2, 3), {"used": (1.0, 0.0, 1.0, 2.0), "first_stage": (0.0, 1.0, 0.0, 0.0)}),
        Verdict((0, 1), {"used": (1.0, 1.0)}),  # no corrupted client took part
    ]
    rounds = shares(verdicts, frozenset({2, 3}))
    found = means_over_rounds(rounds)
    assert found["corrupted_weight"] == pytest.approx((0.75 + 0) / 2)
    assert found["honest_rejected"] == pytest.approx((0.5 + 0) / 2)
    assert found["corrupted_rejected"] == 0
    assert (found["honest_first_stage"], found["corrupted_first_stage"]) == (0.5, 0.0)
    curves = by_round(rounds)
    assert curves["corrupted_weight"] == [0.75, 0.0]
    assert curves["corrupted_first_stage"] == [0.0, None]
