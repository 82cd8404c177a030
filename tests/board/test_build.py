"""What several records of a cell come to: readings, seeds that disagree, what is missing, what was edited."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import pytest
from helpers.suite import READ, measure, records_in

from fedarena.board.board import Board, BoardCell
from fedarena.board.build import build
from fedarena.board.doubtful_record import doubt
from fedarena.board.planned_trial import PlannedTrial
from fedarena.board.published import from_json, to_json
from fedarena.records.schema import Record

ONE = f"""
title = "One cell"
seeds = [0]
{READ}
[[matrix]]
problem = "read"
defenses = ["fedavg"]
attacks = ["last-layer-label"]
parties = ["server"]
forms = ["adaptive"]
"""


@pytest.fixture(scope="module")
def some(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Record]:
    """A record of an attack and one of the run that it read, by attack."""
    where = tmp_path_factory.mktemp("one")
    measure(ONE, where)
    return {r["attack"]: r for r in records_in(where / "out").values()}


def attacked(some: dict[str, Record], seed: int, *records: dict[str, Any], **changes: Any) -> PlannedTrial:
    """A trial of the attack whose records differ from the measured one in what is given."""
    made = [
        {**copy.deepcopy(some["last-layer-label"]), "seed": seed, "key": f"{seed}-{i}", **r}
        for i, r in enumerate(records)
    ]
    return PlannedTrial(
        problem="read",
        defense="fedavg",
        attack="last-layer-label",
        party="server",
        form="adaptive",
        knows="",
        goal="labels",
        seed=seed,
        records=made,
        **changes,
    )


def honest(
    some: dict[str, Record], seed: int, accuracy: float | None, defense: str = "fedavg", **alone: float
) -> PlannedTrial:
    """A trial in which everybody was honest; without an accuracy it is missing. Clients reach 0.4 alone."""
    made = copy.deepcopy(some["none"])
    made["utility"] |= {"clean_accuracy": accuracy, "references": {"local_only": 0.4, **alone}}
    records = [] if accuracy is None else [made]
    return PlannedTrial(
        problem="read",
        defense=defense,
        attack="none",
        party="",
        form="",
        knows="",
        goal="",
        seed=seed,
        records=records,
        reference=defense == "fedavg",
    )


def scored(privacy: float, reading: str = "") -> dict[str, Any]:
    return {"scores": {"leak": 1 - privacy, "privacy": privacy}, "reading": reading}


def cell_of(*trials: PlannedTrial) -> BoardCell:
    (cell,) = build("play", "Play", trials).cells
    return cell


def test_a_cell_shows_the_worst_reading_over_seeds_and_keeps_others(some: dict[str, Record]) -> None:
    cell = cell_of(
        attacked(some, 0, scored(0.9, "upload"), scored(0.1, "difference")),
        attacked(some, 1, scored(0.2, "upload"), scored(0.8, "difference")),
    )
    assert (cell.reading, cell.scores) == ("difference", {0: 0.1, 1: 0.8})
    assert cell.other_readings == {"upload": 0.55}
    assert cell.keys == {0: "0-1", 1: "1-1"}
    assert cell.status == "ok"


def test_a_record_without_a_reading_stands_for_each(some: dict[str, Record]) -> None:
    """A seed on which nothing could start says nothing about how it would have been read."""
    nothing = {"reading": "", "scores": {}, "status": "n/a", "reason": "nothing to read"}
    cell = cell_of(attacked(some, 0, scored(0.9, "upload"), scored(0.1, "difference")), attacked(some, 1, nothing))
    assert (cell.status, cell.statuses) == ("mixed", {0: "ok", 1: "n/a"})
    assert cell.reason == "seed 1: nothing to read"
    assert cell.scores == {0: 0.1}


def test_what_stands_for_each_reading_does_so_in_its_part_alone(some: dict[str, Record]) -> None:
    """Nothing could be read of the first rounds of seed 1, which says nothing about its other rounds."""
    nothing = {"reading": "", "scores": {}, "status": "n/a", "reason": "nothing to read"}
    cell = cell_of(
        attacked(some, 0, scored(0.9, "upload"), scored(0.4, "upload, other rounds")),
        attacked(some, 1, nothing, scored(0.2, "upload, other rounds")),
    )
    assert (cell.reading, cell.scores, cell.status) == ("upload, other rounds", {0: 0.4, 1: 0.2}, "ok")
    assert cell.other_readings == {"upload": 0.9}


def test_a_part_in_which_a_defense_is_silent_excludes_the_cell(some: dict[str, Record]) -> None:
    control = {"said": "nothing", "outcome": "leaks labels", "finding": "", "metrics": {}}
    silent = {"reading": "last rounds", "scores": {}, "status": "n/a", "reason": "nothing to read", "control": control}
    cell = cell_of(attacked(some, 0, scored(0.9, "upload"), silent))
    assert cell.excluded == "silent: a control reading of the same messages leaks labels"
    assert not cell.counts


def test_a_cell_has_the_warnings_that_its_clean_run_lacks(some: dict[str, Record]) -> None:
    """What happens only while somebody attacks, or on what the attack has clients work on, is nobody else's to tell."""
    calm = honest(some, 0, 0.9)
    calm.records[0]["warnings"] = ["simulated"]
    shown = {**scored(0.5, "shown"), "warnings": ["simulated", "digits lost"]}
    trials = [attacked(some, seed, shown, {**scored(0.9, "beside"), "warnings": ["beside"]}) for seed in (0, 1)]
    board = build("play", "Play", [calm, *trials])
    assert board.clean_runs[0].warnings == ("simulated",)
    assert board.cells[0].reading == "shown"
    assert board.cells[0].warnings == ("digits lost",)
    assert build("play", "Play", trials).cells[0].warnings == ("simulated", "digits lost")
    assert from_json(to_json(board), Path("board.json")) == board


def test_seeds_that_agree_have_one_reason(some: dict[str, Record]) -> None:
    nothing = {"reading": "", "scores": {}, "status": "n/a", "reason": "nothing to read"}
    cell = cell_of(attacked(some, 0, nothing), attacked(some, 1, nothing))
    assert (cell.status, cell.reason, cell.scores) == ("n/a", "nothing to read", {})


def test_a_refused_trial_is_na_and_one_without_records_is_missing(some: dict[str, Record]) -> None:
    cell = cell_of(
        attacked(some, 0, refused="it takes no such model"), attacked(some, 1), attacked(some, 2, scored(0.5))
    )
    assert cell.statuses == {0: "n/a", 1: "missing", 2: "ok"}
    assert (cell.status, cell.reason) == ("mixed", "seed 0: it takes no such model")
    assert cell_of(attacked(some, 0)).status == "missing"


def test_utility_is_clipped_and_needs_fedavg_on_the_seed(some: dict[str, Record]) -> None:
    board: Board = build(
        "play",
        "Play",
        [
            *(honest(some, seed, accuracy) for seed, accuracy in enumerate((0.8, 0.5, 0.0, None))),
            *(honest(some, seed, accuracy, "dbcl") for seed, accuracy in enumerate((0.6, 0.9, 0.3, 0.7))),
        ],
    )
    plain, other = board.clean_runs
    assert board.problems[0].reference_accuracy == {0: 0.8, 1: 0.5, 2: 0.0}
    assert plain.utility == {0: 1.0, 1: 1.0}  # FedAvg's 0.0 is no better than 0.4, so that there is nothing to keep
    assert other.utility == {0: 0.5, 1: 1.0}
    assert other.accuracy == {0: 0.6, 1: 0.9, 2: 0.3, 3: 0.7}
    assert (plain.status, other.status) == ("mixed", "ok")


def test_a_server_that_does_as_well_alone_leaves_no_utility(some: dict[str, Record]) -> None:
    board = build("play", "Play", [honest(some, 0, 0.8), honest(some, 0, 0.7, "dbcl", server_only=0.7)])
    plain, other = board.clean_runs
    assert (plain.utility, plain.server_only) == ({0: 1.0}, {})
    assert (other.utility, other.server_only) == ({0: 0.0}, {0: 0.7})
    assert board.problems[0].local_only == {0: 0.4}


def test_a_diverged_model_has_no_utility_and_is_no_reference(some: dict[str, Record]) -> None:
    def diverged(trial: PlannedTrial) -> PlannedTrial:
        trial.records[0]["status"] = "diverged"
        return trial

    board = build(
        "play",
        "Play",
        [
            honest(some, 0, 0.8),
            diverged(honest(some, 1, 0.1)),
            diverged(honest(some, 0, 0.3, "dbcl")),
            honest(some, 1, 0.7, "dbcl"),
        ],
    )
    assert board.problems[0].reference_accuracy == {0: 0.8}
    assert [h.utility for h in board.clean_runs] == [{0: 1.0}, {0: 0.0}]
    assert [h.status for h in board.clean_runs] == ["mixed", "mixed"]


def test_numbers_are_kept_to_six_decimals(some: dict[str, Record]) -> None:
    assert cell_of(attacked(some, 0, scored(0.12345678))).scores == {0: 0.123457}


def test_every_commit_is_named_once(some: dict[str, Record]) -> None:
    trials = [
        attacked(some, seed, scored(0.5) | {"environment": {**some["none"]["environment"], "commit": commit}})
        for seed, commit in enumerate(("abc", "def", "abc", None))
    ]
    assert build("play", "Play", trials).provenance["commit"] == "abc, def"


def test_settings_identify_the_experiment_and_not_the_seed(some: dict[str, Record]) -> None:
    one, again = (cell_of(attacked(some, seed, scored(0.5))) for seed in (0, 1))
    options = copy.deepcopy(some["last-layer-label"]["options"])
    options["training"]["lr"] *= 2
    trained, attack = (
        cell_of(attacked(some, 0, scored(0.5) | {"options": o})) for o in (options, some["none"]["options"])
    )
    assert (one.settings, one.defense_settings) == (again.settings, again.defense_settings)
    assert trained.settings != one.settings
    assert trained.defense_settings != one.defense_settings
    assert attack.defense_settings == one.defense_settings


def test_a_score_that_its_metrics_do_not_give_was_edited(some: dict[str, Record]) -> None:
    record = some["last-layer-label"]
    assert doubt(record) == doubt(some["none"]) == ""
    privacy = record["scores"]["privacy"]
    other = 1.0 if privacy < 0.5 else 0.0
    for change, why in (
        (
            {"scores": {"leak": 1 - other, "privacy": other}},
            f"its scores \\(leak {1 - other:g}, privacy {other:g}\\) do not",
        ),
        ({"scores": {**record["scores"], "leak": 0.123}}, "its scores .* do not follow from what was measured"),
        ({"scores": {}}, f"its scores \\(none\\) do not .* which gives leak .*, privacy {privacy:.6g}"),
        ({"scores": {"integrity": privacy}}, "its scores .* do not follow"),
        ({"metrics": {}}, "metrics has no label_accuracy, from which its score follows"),
        ({"status": "failed"}, "it has scores .*, where there was nothing to score"),
        ({"status": "n/a"}, "it has scores .*, where there was nothing to score"),
        ({"attack": "none"}, "it has scores .*, where there was nothing to score"),
        ({"goal": ""}, "goal is empty"),
        ({"party": ""}, "party or form is empty"),
        ({"form": "", "status": "failed"}, "party or form is empty"),
    ):
        assert re.match(why, doubt({**record, **change})), doubt({**record, **change})


def poisoned(accuracy: float, clean: float, chance: float, scores: dict[str, float]) -> Record:
    """What a score of integrity follows from."""
    return {
        "attack": "sign-flip",
        "attacker_knowledge": "own",
        "party": "client",
        "form": "paper",
        "goal": "",
        "status": "ok",
        "metrics": {"accuracy": accuracy},
        "utility": {"clean_accuracy": clean, "chance": chance},
        "scores": scores,
    }


def test_a_poisoned_run_has_no_score_only_if_the_clean_run_learned_nothing() -> None:
    assert doubt(poisoned(0.5, 0.9, 0.1, {"integrity": 0.5})) == ""
    assert doubt(poisoned(0.1, 0.14, 0.1, {})) == ""
    failed = poisoned(0.1, 0.14, 0.1, {"integrity": 0.0})
    assert doubt({**failed, "utility": {**failed["utility"], "fedavg_accuracy": 0.9}}) == ""
    assert "which gives none" in doubt({**failed, "utility": {**failed["utility"], "fedavg_accuracy": 0.12}})
    assert "which gives integrity 0.5" in doubt(poisoned(0.5, 0.9, 0.1, {}))
    assert "which gives none" in doubt(poisoned(0.1, 0.14, 0.1, {"integrity": 1.0}))
    assert "metrics has no accuracy" in doubt({**poisoned(0.5, 0.9, 0.1, {}), "metrics": {}})


def test_a_diverged_run_may_leave_an_attack_without_a_score(some: dict[str, Record]) -> None:
    record = {**some["last-layer-label"], "status": "diverged"}
    assert doubt(record) == doubt({**record, "scores": {}, "metrics": {}}) == ""
    assert doubt({**record, "scores": {"leak": 0.5, "privacy": 0.5}})


@pytest.mark.parametrize(
    ("number", "expected", "text"),
    [
        (0, 0, "nobody corrupted or expected to be"),
        (0, 2, "nobody corrupted, 2 expected to be"),
        (3, 3, "3 of them corrupted where they poison"),
        (3, 1, "3 of them corrupted where they poison, 1 expected to be"),
    ],
)
def test_a_problem_s_description_has_the_number_that_the_server_assumes(
    some: dict[str, Record], number: int, expected: int, text: str
) -> None:
    """A rule that expects nobody may be the plain mean."""
    record = copy.deepcopy(next(iter(some.values())))
    record["problem"] |= {"corrupted": number, "assumed_corrupted": expected}
    asked = PlannedTrial(
        problem="p",
        defense="fedavg",
        attack="none",
        party="",
        form="",
        knows="",
        goal="",
        seed=0,
        records=[record],
        refused="",
        reference=True,
    )
    (arena,) = build("s", "t", [asked]).problems
    assert f", {text}, " in arena.description


def test_who_contributed_an_attack_is_told_and_of_a_defense_it_is_not(some: dict[str, Record]) -> None:
    for origins, told in (
        ({"shy": "arena-toys 1 (B. Maker)"}, ""),
        (
            {"shy": "arena-toys 1", "last-layer-label": "arena-toys 1 (A. Reader)"},
            "last-layer-label: arena-toys 1 (A. Reader)",
        ),
    ):
        trials = [honest(some, 0, 0.9), attacked(some, 0, {"defense": "shy", "origins": origins})]
        (cell,) = build("one", "", trials).cells
        assert cell.found_by == told
