"""Boards from folders: of a suite, of loose records, published, empty, and of what is none."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from statistics import fmean

import pytest
from helpers.suite import TINY, measure, planned, records_in

from fedarena.board.board import Board
from fedarena.board.load import find_folder, load_board
from fedarena.board.published import to_json
from fedarena.board.ranking import rank_defenses
from fedarena.core.errors import UserError


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny suite, run."""
    where = tmp_path_factory.mktemp("ran")
    measure(TINY, where)
    return where


def test_a_suite_s_board_says_what_its_records_say(ran: Path) -> None:
    board = load_board(ran / "out")
    records = records_in(ran / "out")
    assert (board.suite, board.title, board.seeds, board.notes) == ("tiny", "Tiny", (0, 1), ())
    assert [(a.name, sorted(a.reference_accuracy)) for a in board.problems] == [("read", [0, 1]), ("poison", [0, 1])]
    assert len(board.clean_runs) == 4
    assert len(board.cells) == 3 * (2 + 4) + 2 * 2
    assert {c.status for c in board.cells} == {"ok"}
    for c in board.cells:
        assert sorted(c.keys) == [0, 1]
        for seed, key in c.keys.items():
            r = records[f"{key}.json"]
            assert (r["defense"], r["attack"], r["seed"], r["reading"]) == (c.defense, c.attack, seed, c.reading)
            assert c.scores.get(seed) == pytest.approx(r["scores"].get(c.axis), abs=1e-6)
        # Of several ways of looking the worst for the defender is shown.
        assert all(fmean(c.scores.values()) <= other + 1e-6 for other in c.other_readings.values())
    assert {c.attack for c in board.cells if c.scores} > {"dlg", "sign-flip", "pixel-trigger"}
    for h in board.clean_runs:
        problem = next(p for p in board.problems if p.name == h.problem)
        for seed, value in h.utility.items():
            floor = max(problem.chance, problem.local_only[seed])
            kept = (h.accuracy[seed] - floor) / (problem.reference_accuracy[seed] - floor)
            assert value == pytest.approx(min(1, max(0, kept)), abs=1e-5)
    assert len(rank_defenses(board)) == 2


def test_a_published_board_is_the_same(ran: Path, tmp_path: Path) -> None:
    board = load_board(ran / "out")
    (tmp_path / "board.json").write_text(to_json(board))
    assert json.loads(to_json(load_board(tmp_path / "board.json"))) == json.loads(to_json(board))
    assert load_board(tmp_path).cells == load_board(tmp_path / "board.json").cells


def test_a_board_of_one_seed_has_missing_cells(ran: Path, tmp_path: Path) -> None:
    shutil.copytree(ran / "out", tmp_path / "out")
    for name, r in records_in(ran / "out").items():
        if r["seed"] == 1 or r["attack"] == "sign-flip":
            (tmp_path / "out" / "records" / name).unlink()
    board = load_board(tmp_path / "out")
    assert {c.status for c in board.cells if c.attack == "sign-flip"} == {"missing"}
    assert {c.status for c in board.cells if c.attack == "dlg"} == {"mixed"}
    assert {tuple(c.statuses.values()) for c in board.cells if c.attack == "dlg"} == {("ok", "missing")}
    assert {row.rank for row in rank_defenses(board)} == {None}


def test_loose_records_make_a_board_of_their_own(ran: Path, tmp_path: Path) -> None:
    shutil.copytree(ran / "out" / "records", tmp_path / "mine" / "records")
    loose, suite = load_board(tmp_path / "mine"), load_board(ran / "out")
    assert sorted(a.name for a in loose.problems) == ["digits-mlp", "digits-mlp#2"]

    def scores(board: Board) -> list[tuple[object, ...]]:
        return sorted((c.defense, c.attack, c.party, c.form, c.knows, *sorted(c.scores.items())) for c in board.cells)

    assert scores(loose) == scores(suite)
    assert {h.accuracy[0] for h in loose.clean_runs} == {h.accuracy[0] for h in suite.clean_runs}


def test_damaged_and_foreign_records_are_noted(ran: Path, tmp_path: Path) -> None:
    shutil.copytree(ran / "out", tmp_path / "out")
    name = next(n for n, r in records_in(ran / "out").items() if r["attack"] == "sign-flip")
    (tmp_path / "out" / "records" / name).write_text("")
    measure(TINY, tmp_path / "out", seeds=(7,))
    for path in (tmp_path / "out" / "out" / "records").glob("*.json"):
        shutil.copy(path, tmp_path / "out" / "records")
    notes = load_board(tmp_path / "out").notes
    assert notes[0].startswith(f"damaged records are ignored: records/{name} (")
    assert notes[1] == "28 trials in the folder, not of this suite as it is now and not on the board"


def test_other_files_are_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"there are no records in .*nothing"):
        load_board(tmp_path / "nothing")
    for text in ("", "{}", "[1]", '{"board": 1}', '{"board": 99}', "\udcff"):
        (tmp_path / "board.json").write_text(text, errors="surrogateescape")
        with pytest.raises(UserError, match=r"board\.json is (not a board|damaged|a board of layout 99)") as found:
            load_board(tmp_path / "board.json")
        assert "\n" not in str(found.value)


def test_a_folder_without_records_is_refused_whatever_else_it_holds(tmp_path: Path) -> None:
    from fedarena.runs.suite.plan import write_plan

    (tmp_path / "empty").mkdir()
    (tmp_path / "damaged" / "records").mkdir(parents=True)
    (tmp_path / "damaged" / "records" / "a.json").write_text("{")
    write_plan(planned(TINY, tmp_path)[1], tmp_path / "planned")
    for name in ("empty", "damaged", "planned"):
        with pytest.raises(UserError, match=f"there are no records in .*{name}.*: `bench run`"):
            load_board(tmp_path / name)


def test_a_name_is_a_path_or_a_suite_s_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_folder("smoke") == Path("runs/smoke")
    (tmp_path / "smoke").mkdir()
    assert find_folder("smoke") == Path("smoke")


def test_an_edited_score_counts_as_missing(ran: Path, tmp_path: Path) -> None:
    shutil.copytree(ran / "out", tmp_path / "out")
    path = next(
        p for p in sorted((tmp_path / "out" / "records").iterdir()) if "privacy" in json.loads(p.read_text())["scores"]
    )
    record = json.loads(path.read_text())
    record["scores"]["privacy"] = 1.0 - 0.5 * record["scores"]["privacy"]
    path.write_text(json.dumps(record))
    board = load_board(tmp_path / "out")
    assert board.notes[0].startswith(f"damaged records are ignored: records/{path.name} (its scores (leak ")
    assert "do not follow from what was measured" in board.notes[0]
    assert "missing" in {status for c in board.cells for status in c.statuses.values()}


def test_a_damaged_plan_is_noted(ran: Path, tmp_path: Path) -> None:
    shutil.copytree(ran / "out", tmp_path / "out")
    (tmp_path / "out" / "plan.json").write_text('{"a":')
    assert "plan.json is damaged" in load_board(tmp_path / "out").notes[0]


def test_a_suite_s_file_names_its_folder() -> None:
    assert find_folder("somewhere/mine.toml") == Path("runs") / "mine"
