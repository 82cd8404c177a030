"""Known answers of the judgement of poisoned runs."""

from __future__ import annotations

import pytest

from fedarena.federation.integrity import by_round, damage, learned, means_over_rounds, score, shares
from fedarena.federation.one_round import Verdict

CLEAN = [[10, 0.3, 1.0], [20, 0.75, 1.0], [30, 0.79, 1.0], [40, 0.8, 1.0], [50, 0.8, 1.0]]


def attacked(*accuracies: float) -> list[list[float]]:
    return [[10 * (i + 1), a, 1.0] for i, a in enumerate(accuracies)]


def test_damage_by_hand() -> None:
    found = damage(attacked(0.1, 0.7, 0.2, 0.5, 0.78), CLEAN)
    assert found["accuracy_drop"] == pytest.approx(0.02)
    assert found["largest_drop"] == pytest.approx(0.59)
    assert found["lowest"] == 0.2  # round 10 does not count: the clean run had not learned yet
    assert found["rounds_to_recover"] == 30  # below 95 % of the honest run from round 20 on, and not at 50


SLOW = [[10, 0.3, 1.0], [20, 0.4, 1.0], [30, 0.5, 1.0], [40, 0.6, 1.0], [50, 0.8, 1.0]]
"""A run that has learned at its end alone."""


def test_a_fall_from_what_there_was_counts_though_the_clean_run_was_slow() -> None:
    """Attackers who help until they strike: 0.85 at round 20, 0.05 at round 30."""
    found = damage(attacked(0.6, 0.85, 0.05, 0.8, 0.85), SLOW, 20)
    assert found["lowest"] == 0.05
    assert found["rounds_to_recover"] == 10


def test_a_model_that_learns_sooner_than_the_clean_one_has_not_fallen() -> None:
    found = damage(attacked(0.6, 0.75, 0.74, 0.8, 0.85), SLOW)
    assert found["lowest"] == 0.85
    assert found["rounds_to_recover"] == 0


def test_so_does_a_fall_of_a_model_that_was_half_way() -> None:
    found = damage(attacked(0.3, 0.4, 0.2, 0.35, 0.8), SLOW, 20)
    assert found["lowest"] == 0.2
    assert found["rounds_to_recover"] == 20


@pytest.mark.parametrize("begins", [0, 20])
def test_a_model_that_goes_on_learning_has_not_fallen(begins: int) -> None:
    found = damage(attacked(0.1, 0.4, 0.45, 0.5, 0.7), SLOW, begins)
    assert found["lowest"] == 0.7
    assert "rounds_to_recover" not in found


def test_a_run_that_falls_again_has_not_recovered() -> None:
    assert "rounds_to_recover" not in damage(attacked(0.3, 0.4, 0.79, 0.8, 0.5), CLEAN)


def test_what_never_came_back_has_no_time_to_recover() -> None:
    found = damage(attacked(0.3, 0.75, 0.79, 0.1, 0.12), CLEAN)
    assert "rounds_to_recover" not in found
    assert found["lowest"] == 0.1


def test_a_run_that_ended_early_stays_as_bad_as_it_was() -> None:
    found = damage([[10, 0.3, 1.0], [20, 0.7, 1.0], [23, 0.1, 1.0]], CLEAN)
    assert found["accuracy_drop"] == pytest.approx(0.7)
    assert found["lowest"] == 0.1


@pytest.mark.parametrize(
    ("begins", "lowest", "largest"), [(0, 0.2, 0.55), (19, 0.2, 0.55), (20, 0.6, 0.2), (49, 0.7, 0.1)]
)
def test_what_happens_before_an_attack_begins_is_none_of_its_doing(begins: int, lowest: float, largest: float) -> None:
    """An evaluation after round 20 has seen the rounds 0 to 19."""
    found = damage(attacked(0.3, 0.2, 0.79, 0.6, 0.7), CLEAN, begins)
    assert found["lowest"] == lowest
    assert found["largest_drop"] == pytest.approx(largest)


def test_an_attack_without_effect_leaves_nothing_to_recover_from() -> None:
    dip = attacked(0.3, 0.1, 0.79, 0.8, 0.8)
    assert damage(dip, CLEAN)["rounds_to_recover"] == 10
    assert damage(dip, CLEAN, 30)["rounds_to_recover"] == 0


def test_a_look_out_of_turn_counts_beside_the_last_clean_look() -> None:
    curve = sorted([*attacked(0.3, 0.75, 0.79, 0.8, 0.8), [35, 0.05, 1.0]])
    found = damage(curve, CLEAN, 33)
    assert found["lowest"] == 0.05
    assert found["largest_drop"] == pytest.approx(0.74)
    assert found["rounds_to_recover"] == 5
    assert damage(curve, CLEAN, 35)["lowest"] == 0.8


def test_what_never_fell_recovers_at_once() -> None:
    assert damage(CLEAN, CLEAN) == {"accuracy_drop": 0, "largest_drop": 0, "lowest": 0.75, "rounds_to_recover": 0}


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


@pytest.mark.parametrize(("accuracy", "expected"), [(0.8, 1.0), (0.1, 0.0), (0.45, 0.5), (0.05, 0.0), (0.9, 1.0)])
def test_integrity_is_what_is_left_above_chance(accuracy: float, expected: float) -> None:
    assert score({"accuracy": accuracy}, 0.8, 0.1, 0.0, 0.9)["integrity"] == pytest.approx(expected)


def test_a_backdoor_counts_by_its_trigger() -> None:
    found = score({"accuracy": 0.8, "attack_success_rate": 0.55}, 0.8, 0.1, 0.1, 0.9)
    assert found["integrity"] == pytest.approx(0.5)


def test_nothing_learned_nothing_to_lose() -> None:
    for plain in (0.13, None):
        assert score({"accuracy": 0.1}, 0.13, 0.1, 0.0, plain) == {}
    assert not learned(0.13, 0.1)
    assert learned(0.16, 0.1)


def test_where_fedavg_learned_a_defense_that_did_not_has_kept_nothing() -> None:
    assert score({"accuracy": 0.13}, 0.13, 0.1, 0.0, 0.9) == {"integrity": 0.0}
