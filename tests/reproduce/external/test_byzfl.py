"""ByzFL's heat map: every run is the library's, a cell is the worst of its attacks, and a small run gives a row."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from fedarena.core.registry import find
from fedarena.federation.spec import GroupSpec
from fedarena.reproduce.external import byzfl
from fedarena.reproduce.external.byzfl import BY_NAME, TABLE, Experiment
from fedarena.reproduce.machine import Machine


def test_every_cell_of_both_rows_is_the_worst_of_three_attacks() -> None:
    assert len(BY_NAME) == 2 * 2 * 4 * 3
    assert "gamma=0, TrMean, f=2, sign-flip" in BY_NAME
    cells = {one.selected: one for one in TABLE.published}
    assert len(cells) == len(TABLE.published) == 2 * 2 * 4
    assert {piece for one in cells.values() for piece in one.pieces} == set(BY_NAME)
    for name, cell in cells.items():
        assert [piece for piece in BY_NAME if piece.startswith(f"{name}, ")] == list(cell.pieces)
        assert cell.column == "best"
    assert cells["gamma=0, TrMean, f=2"].paper == 0.61
    assert cells["gamma=0, GeometricMedian, f=4"].paper == 0.27
    assert cells["gamma=1, GeometricMedian, f=4"].paper == 0.97


@pytest.mark.parametrize("name", BY_NAME)
def test_every_run_is_as_in_the_library(name: str) -> None:
    experiment = BY_NAME[name]
    spec = experiment.group(Machine(), 0)
    problem, schedule = spec.problem, spec.problem.schedule
    assert (schedule.rounds, schedule.batch_size, schedule.lr, schedule.eval_every) == (800, 25, 0.1, 50)
    assert schedule.client_momentum
    assert (schedule.momentum, schedule.fresh_share) == (0.9, pytest.approx(0.1))
    assert (schedule.server_decay, schedule.step_size) == (1e-4, 0.1)
    assert (problem.dataset, problem.partition) == ("mnist", "similarity")
    options: Any = problem.partition_options
    assert options.share == experiment.similarity
    assert problem.clients - problem.corrupted == 10
    assert problem.corrupted_data == "resampled"  # honest clients hold all data
    assert problem.corrupted == problem.assumed_corrupted_or_default == experiment.byzantine
    assert [part.name for part in spec.defense.rest[:2]] == ["clipping", "nnm"]
    clipping: Any = spec.defense.rest[0].options
    assert clipping.c == 2.0
    rule: Any = spec.defense.rest[2].options
    assert experiment.rule == "TrMean" or (rule.iterations, rule.eps) == (3, 0.1)
    (threat,) = spec.threats
    assert threat.knows == "omniscient"


def test_attacks_have_the_library_s_strength() -> None:
    specs = {name: Experiment("TrMean", name, 0.0, 1).group(Machine(), 0).attack for name in byzfl.ATTACKS}
    options: dict[str, Any] = {name: spec.options for name, spec in specs.items() if spec is not None}
    assert options["sign-flip"].epsilon == 1.0
    for name in ("Opt-IPM", "Opt-ALIE"):
        assert (options[name].evaluations, options[name].delta, options[name].ratio) == (20, 10.0, 0.8)


def row_of(curve: list[list[Any]], monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    record = {"status": "ok", "attacked": {"curve": curve}, "cost": {"seconds": 1.0}}
    monkeypatch.setattr(byzfl, "prepare", lambda spec, progress: [SimpleNamespace(record=record)])
    (row,) = TABLE.rows("gamma=0, TrMean, f=2, Opt-IPM", Machine(), 0, lambda share, text: None)
    return row


def test_the_best_checkpoint_stands_beside_the_last_and_the_lowest(monkeypatch: pytest.MonkeyPatch) -> None:
    curve = [[50, 0.2, None], [200, 0.3, None], [400, 0.61, None], [750, 0.4, None], [800, 0.43, None]]
    row = row_of([[0, 0.9, None], *curve], monkeypatch)
    assert (row["best"], row["best_at"], row["last"], row["lowest"], row["settled"]) == (0.61, 400, 0.43, 0.2, 0.4)
    assert row_of(curve[:2], monkeypatch)["settled"] == 0.3  # stopped before


@pytest.mark.parametrize("attack", byzfl.ATTACKS)
def test_a_short_run_on_digits_gives_a_row(attack: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Experiment.group

    def short(self: Experiment, machine: Machine, seed: int) -> GroupSpec:
        spec = whole(self, machine, seed)
        schedule = replace(spec.problem.schedule, rounds=3, eval_every=1)
        problem = replace(spec.problem, dataset="digits", model="mlp", schedule=schedule)
        return replace(spec, problem=replace(problem, model_options=find("model", "mlp").parse({"widths": "8"})))

    monkeypatch.setattr(Experiment, "group", short)
    for rule in byzfl.RULES:
        (row,) = TABLE.rows(f"gamma=0, {rule}, f=2, {attack}", Machine(), 0, lambda share, text: None)
        assert set(TABLE.measured) <= set(row)
        assert 0 <= row["lowest"] <= row["last"] <= row["best"] <= 1
        assert row["lowest"] <= row["settled"]
