"""The phase diagram of gradient inversion: its conditions, what a row says, and its picture."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedarena.core import registry
from fedarena.problem.spec import usual_problem
from fedarena.reproduce.inference import inversion_phases
from fedarena.reproduce.inference.inversion_phases import (
    BATCHES,
    NORMS,
    PIECES,
    ROUNDS,
    STAGES,
    STEPS,
    SUMMED,
    draw,
    measure,
    settings,
)
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.tables import TABLES


def test_every_combination_of_five_conditions_is_in_it() -> None:
    assert len(PIECES) == len(NORMS) * len(STAGES) * len(BATCHES) * len(STEPS) * len(SUMMED) == 72
    assert TABLES["inversion/phases"] == inversion_phases.__name__


@pytest.mark.parametrize("conditions", PIECES.values(), ids=PIECES)
def test_the_problem_has_the_conditions(conditions: inversion_phases.Conditions) -> None:
    norm, stage, batch, steps, _ = conditions
    given, card = settings(conditions), registry.find("attack", "inverting-gradients")
    problem = usual_problem({"dataset": "digits", **given["problem"]}, given, (card,))
    watch = card.load()(card.parse(dict(given["attack"]))).watch(problem.schedule)
    assert (problem.model_options.norm, problem.schedule.batch_size) == (norm, batch)
    assert problem.schedule.steps(359) == steps
    assert problem.schedule.taken(359) == batch * (steps if steps > 1 else 1)
    assert STAGES[stage] <= min(watch.victims) <= max(watch.victims) < ROUNDS


def test_a_sum_of_normalised_clients_is_measured_and_drawn(tmp_path: Path) -> None:
    conditions = ("batch", "untrained", 4, 4, 4)
    given = {name: dict(some) for name, some in settings(conditions).items()}
    given["training"] |= {"rounds": "3"}
    given["attack"] |= {"iterations": "3", "restarts": "1", "window": "2"}
    (row,) = measure(conditions, Machine(), 0, lambda share, text: None, given)
    assert row["note"] == ""
    assert 0 <= row["low"] <= row["identified"] <= row["high"] <= 1
    assert row["gain"] <= row["identified"]
    draw([{"seed": 0} | row], tmp_path / "phases.png")
    assert (tmp_path / "phases.png").stat().st_size > 1000
