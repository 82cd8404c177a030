"""Known answers of the judgement of poisoned runs."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fedarena.goals.metrics.gain import gained
from fedarena.goals.metrics.harm import damage, score

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


@pytest.mark.parametrize("begins", [0, 20])
def test_a_model_that_was_half_way_has_not_fallen(begins: int) -> None:
    """Before a model has learned, its accuracy goes up and down by chance, and to learn more slowly is no harm."""
    found = damage(attacked(0.3, 0.4, 0.2, 0.35, 0.8), SLOW, begins)
    assert found["lowest"] == 0.8
    assert found["rounds_to_recover"] == 0


@pytest.mark.parametrize("begins", [0, 20])
def test_a_model_that_goes_on_learning_has_not_fallen(begins: int) -> None:
    found = damage(attacked(0.1, 0.4, 0.45, 0.5, 0.7), SLOW, begins)
    assert found["lowest"] == 0.7
    assert "rounds_to_recover" not in found


def test_a_fall_counts_though_the_clean_run_had_not_gained_enough() -> None:
    """Attackers strike from round 20 to 30; the clean run is within a tenth of its accuracy, not of its gain."""
    clean = [[10, 0.6, 1.0], [20, 0.86, 1.0], [30, 0.89, 1.0], [40, 0.94, 1.0], [50, 0.95, 1.0]]
    found = damage(attacked(0.6, 0.945, 0.1, 0.5, 0.95), clean, 20, floor=0.86)
    assert (found["window_accuracy"], found["window_clean_accuracy"]) == (0.1, 0.89)
    assert found["mean_accuracy"] >= found["window_accuracy"]


def test_a_model_that_learns_more_slowly_has_no_worse_window() -> None:
    clean = [[10, 0.6, 1.0], [20, 0.86, 1.0], [30, 0.89, 1.0], [40, 0.94, 1.0], [50, 0.95, 1.0]]
    found = damage(attacked(0.5, 0.7, 0.8, 0.93, 0.95), clean, 0, floor=0.86)
    assert found["window_accuracy"] >= 0.93
    assert found["mean_accuracy"] >= 0.93


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
    found = damage(CLEAN, CLEAN)
    assert (found["accuracy_drop"], found["largest_drop"], found["rounds_to_recover"]) == (0, 0, 0)
    assert (found["lowest"], found["mean_accuracy"]) == (0.75, pytest.approx(0.785))
    assert found["window_accuracy"] == found["window_clean_accuracy"]


@pytest.mark.parametrize(("accuracy", "expected"), [(0.8, 1.0), (0.1, 0.0), (0.45, 0.5), (0.05, 0.0), (0.9, 1.0)])
def test_integrity_is_what_is_left_of_the_gain(accuracy: float, expected: float) -> None:
    assert score({"accuracy": accuracy}, 0.8, 0.1, 0.0, True)["integrity"] == pytest.approx(expected)


def test_a_backdoor_counts_by_its_trigger() -> None:
    found = score({"accuracy": 0.8, "attack_success_rate": 0.55}, 0.8, 0.1, 0.1, True)
    assert found["integrity"] == pytest.approx(0.5)


def test_nothing_learned_nothing_to_lose() -> None:
    assert score({"accuracy": 0.1}, 0.13, 0.1, 0.0, False) == {}
    assert not gained(0.13, 0.1)
    assert gained(0.16, 0.1)


def test_where_fedavg_learned_a_defense_that_did_not_has_kept_nothing() -> None:
    assert score({"accuracy": 0.13}, 0.13, 0.1, 0.0, True) == {"integrity": 0.0}


LONG = [[t, 0.9, 1.0] for t in range(5, 101, 5)]
"""Twenty evaluations of a clean run of 100 rounds, so that a window holds two."""


def under(**accuracies: float) -> list[list[float]]:
    """The long run with another accuracy after these rounds, named r10, r15, …"""
    return [[t, accuracies.get(f"r{t}", a), loss] for t, a, loss in LONG]


def test_the_score_takes_the_worst_window_and_not_the_last_look() -> None:
    found = damage(under(r50=0.2, r55=0.3), LONG, 0, 0.5)
    assert (found["window_accuracy"], found["window_clean_accuracy"]) == (0.25, 0.9)
    assert score({"accuracy": 0.9, **found}, 0.9, 0.5, 0.0, True) == {"integrity": 0.0}


def test_a_fall_of_nearly_a_window_counts() -> None:
    """A clean run that had nine tenths of its gain once, at round 120, and again at its end: 19 of 20 rounds of .5."""
    clean = [[t, {120: 0.935, 200: 0.947}.get(t, 0.93), 1.0] for t in range(1, 201)]
    for rounds in (19, 20):
        curve = [[t, 0.5 if 121 <= t < 121 + rounds else a, loss] for t, a, loss in clean]
        found = damage(curve, clean, 120, 0.8)
        assert found["window_accuracy"] < 0.53
        assert score({"accuracy": 0.947, **found}, 0.947, 0.8, 0.0, True) == {"integrity": 0.0}


def test_looks_that_an_attack_asks_for_are_in_no_window() -> None:
    """Two of them in a row would stand for a tenth of the rounds; the lowest look has them."""
    curve = sorted([*LONG, [51, 0.1, 1.0], [52, 0.1, 1.0]])
    found = damage(curve, LONG, 40, 0.5)
    assert (found["window_accuracy"], found["mean_accuracy"], found["lowest"]) == (0.9, pytest.approx(0.9), 0.1)


def test_after_a_fall_looks_count_until_the_model_is_back() -> None:
    """Before the clean run has learned, at round 50: .83 when the attack begins, then .5, .78 and .9."""
    clean = [[10 * t, a, 1.0] for t, a in enumerate((0.5, 0.8, 0.8, 0.8, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9), 1)]
    accuracies = [0.5, 0.83, 0.5, 0.78, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9]
    found = damage([[10 * (i + 1), a, 1.0] for i, a in enumerate(accuracies)], clean, 20, 0.1)
    assert found["mean_accuracy"] == pytest.approx((0.5 + 0.78 + 6 * 0.9) / 8)


def test_a_look_that_an_attack_asks_for_makes_no_fall() -> None:
    """It asks for looks at a peak, after round 11, and at a low, after round 12. The clean run learns at round 80."""
    clean = [[t, 0.5 if t < 80 else 0.9, 1.0] for t in range(5, 101, 5)]
    curve = [[t, 0.5 if t < 80 else 0.9, 1.0] for t in range(5, 101, 5)]
    asked = sorted([*curve, [11, 0.9, 1.0], [12, 0.1, 1.0]])
    assert damage(asked, clean, 0, 0.2) | {"largest_drop": 0} == damage(curve, clean, 0, 0.2)


def test_a_single_unlucky_look_is_not_the_score() -> None:
    found = damage(under(r50=0.5), LONG, 0, 0.1)
    assert (found["lowest"], found["window_accuracy"]) == (0.5, pytest.approx(0.7))


def test_a_strike_at_the_end_counts_in_full() -> None:
    found = damage(under(r95=0.1, r100=0.1), LONG, 90, 0.1)
    assert found["window_accuracy"] == pytest.approx(0.1)


def test_a_window_in_which_the_clean_run_has_hardly_gained_does_not_count() -> None:
    """Before round 50 the clean run has gained 0.04 of 0.1."""
    clean = [[t, 0.84 if t < 50 else 0.9, 1.0] for t in range(5, 101, 5)]
    attacked = [[t, 0.8 if t < 50 else 0.89, 1.0] for t in range(5, 101, 5)]
    found = damage(attacked, clean, 0, 0.8)
    assert (found["window_accuracy"], found["window_clean_accuracy"]) == (pytest.approx(0.89), pytest.approx(0.9))


def test_what_an_attack_says_of_its_beginning_does_not_shorten_the_window() -> None:
    """A window holds two of the 20 looks. The attack strikes after the last but one, whatever it says."""
    clean = [[t, 0.9, 1.0] for t in range(5, 101, 5)]
    attacked = [[t, 0.9 if t < 100 else 0.5, 1.0] for t in range(5, 101, 5)]
    late, early = (damage(attacked, clean, begins, 0.4) for begins in (99, 0))
    assert late["window_accuracy"] == early["window_accuracy"] == pytest.approx(0.7)
    assert late["lowest"] == 0.5


def test_a_clean_run_that_learns_last_is_compared_over_a_whole_window() -> None:
    clean = [[t, 0.5, 1.0] for t in range(5, 100, 5)] + [[100, 0.9, 1.0]]
    attacked = [[t, 0.5, 1.0] for t in range(5, 100, 5)] + [[100, 0.6, 1.0]]
    found = damage(attacked, clean, 0, 0.4)
    assert (found["window_accuracy"], found["window_clean_accuracy"]) == (pytest.approx(0.55), pytest.approx(0.7))


def test_a_model_no_better_than_not_federating_has_no_integrity() -> None:
    assert score({"accuracy": 0.6, "window_accuracy": 0.6}, 0.9, 0.6, 0.0, True) == {"integrity": 0.0}
    assert score({"accuracy": 0.6}, 0.64, 0.6, 0.0, True) == {"integrity": 0.0}  # the clean run gains too little


@example([(0.3, 0.3), (0.4, 0.4), (0.2, 0.5), (0.35, 0.6), (0.8, 0.8)], [], [0, 2], 0.1)
@example([(0.0, 0.5), (1.0, 1.0)], [(1, 1.0)], [0, 0], 0.0)
@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=30),
    st.lists(st.tuples(st.integers(1, 30), st.floats(0, 1)), max_size=3),
    st.lists(st.integers(0, 31), min_size=2, max_size=2),
    st.floats(0, 0.9),
)
def test_no_word_of_an_attack_lowers_its_score(looks, asked, begins, floor) -> None:  # type: ignore[no-untyped-def]
    """To say that it begins later, or to ask for looks, is of no use to it."""
    bad, good = ([[10 * t, pair[i], 1.0] for t, pair in enumerate(looks, 1)] for i in (0, 1))
    early, late = (damage(bad, good, 10 * begin, floor) for begin in sorted(begins))
    between = [[t, a, 1.0] for t, a in asked if t % 10 and t < 10 * len(looks)]
    more = damage(sorted(bad + between), good, 10 * min(begins), floor)

    def left(found: dict[str, float]) -> dict[str, float]:
        return score({"accuracy": bad[-1][1], **found}, good[-1][1], floor, 0.0, True)

    assert left(early)["integrity"] <= left(late)["integrity"]
    assert left(more) == left(early)


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=30),
    st.lists(st.floats(0, 1), min_size=1, max_size=30),
    st.integers(0, 30),
    st.floats(0, 0.9),
)
def test_the_window_lies_between_the_lowest_and_the_highest_look(bad, good, begins, floor) -> None:  # type: ignore[no-untyped-def]
    n = min(len(bad), len(good))
    attacked, clean = ([[t + 1, a, 1.0] for t, a in enumerate(some[:n])] for some in (bad, good))
    found = damage(attacked, clean, min(begins, n - 1), floor)
    assert min(bad[:n]) - 1e-12 <= found["window_accuracy"] <= max(bad[:n]) + 1e-12
    scores = score({"accuracy": bad[n - 1], **found}, good[n - 1], floor, 0.0, True)
    assert all(0 <= value <= 1 for value in scores.values())
