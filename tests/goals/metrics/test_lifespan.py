"""The lifespan of a backdoor, by hand, in the record, in the table and in the report."""

from __future__ import annotations

from dataclasses import replace

import pytest
from helpers.poisoning import problem as small_problem

from fedarena.core.threat import Threat
from fedarena.federation import compose
from fedarena.federation.replay import NO_REPLAYS
from fedarena.federation.spec import GroupSpec
from fedarena.goals.metrics.lifespan import lifespan
from fedarena.goals.poisoned_run import poisoned_record
from fedarena.problem.spec import ProblemSpec
from fedarena.records.json_schema import check_of
from fedarena.records.schema import Attacked, Record


@pytest.mark.parametrize(
    ("success", "lived", "bound"),
    [
        ([[5, 0.3], [10, 0.8], [15, 0.5], [20, 0.39], [25, 0.9]], 10, 0),  # .39 is below .4
        ([[10, 0.8], [15, 0.4], [20, 0.4]], 10, 1),  # .4 is not
        ([[10, 0.8], [12, 0.1]], 2, 0),
        ([[10, 0.0], [20, 0.0]], 0, 0),
    ],
)
def test_lifespan_by_hand(success: list[list[float]], lived: float, bound: float) -> None:
    assert lifespan(success, 10) == {"lifespan": lived, "lifespan_is_bound": bound}


@pytest.mark.parametrize(
    ("success", "ends"), [([[10, 0.8], [15, 0.4]], None), ([[5, 0.8], [15, 0.4]], 10), ([[10, 0.8]], 10), ([], 10)]
)
def test_without_an_end_or_a_look_there_is_no_lifespan(success: list[list[float]], ends: int | None) -> None:
    assert lifespan(success, ends) == {}


def record(attack: str, **options: str) -> Record:
    problem = small_problem()
    schedule = replace(problem.task.schedule, eval_every=8)
    problem = replace(problem, task=replace(problem.task, schedule=schedule))
    defense = compose.make_defense(compose.parse_defense("fedavg"), problem.task)
    spec = GroupSpec(
        ProblemSpec("digits", model="mlp", partition="iid", clients=10, corrupted=3, schedule=schedule),
        defense=compose.parse_defense("fedavg"),
        attack=compose.parse_attack(attack, options),
        threats=(Threat("client", "paper", knows="own"),),
        seed=0,
    )
    return poisoned_record(spec, problem, defense, NO_REPLAYS, lambda share, text: None)


def test_the_record_has_the_curve_and_the_lifespan() -> None:
    """20 rounds: evaluated after 8, 16 and 20, and after 10, where the window ends."""
    found = record("window+pixel-trigger", start="0.1", end="0.5")
    attacked = found["attacked"]
    assert [t for t, _ in attacked["success"]] == [8, 10, 16, 20]
    assert attacked["ends"] == 10
    assert attacked["success"][-1][1] == pytest.approx(found["metrics"]["attack_success_rate"], abs=1e-4)
    expected = lifespan(attacked["success"], 10)
    assert expected
    assert expected.items() <= found["metrics"].items()


def test_attacks_that_do_not_stop_or_have_no_trigger_have_none() -> None:
    endless, flipped = record("pixel-trigger"), record("window+sign-flip", start="0.1", end="0.5")
    assert "ends" not in endless["attacked"]
    assert len(endless["attacked"]["success"]) == 3
    assert "success" not in flipped["attacked"]
    assert flipped["attacked"]["ends"] == 10
    for one in (endless, flipped):
        assert not any(name.startswith("lifespan") for name in one["metrics"])


def test_a_curve_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="success"):
        check_of(Attacked)({"success": [[1, "high"]]}, "")
