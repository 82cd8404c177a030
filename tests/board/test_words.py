"""How numbers are printed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from helpers.big_board import big_board
from helpers.board import make_arena, make_board, make_cell, make_honest

from fedarena.board.board import Board
from fedarena.board.standing import Cut, Score, read_cut, standings, worst
from fedarena.board.words import case, counts, interval, labelled, marks, notes, score, seeds, times, unmeasured
from fedarena.core.text.mean import Mean


@pytest.mark.parametrize(
    ("mean", "text"),
    [
        (None, "–"),
        (Mean(0.426, None, 1), "0.43"),
        (Mean(0.426, 0.05, 3), "0.43 ± 0.05"),
        (Mean(0.98, 0.05, 3), "0.98 (0.93 to 1.00)"),
        (Mean(0.02, 0.05, 3), "0.02 (0.00 to 0.07)"),
        (Mean(0.5, 0.9, 2), "0.50 (0.00 to 1.00)"),
    ],
)
def test_an_interval_never_leaves_the_scale(mean: Mean | None, text: str) -> None:
    assert interval(mean) == text


def told(board: Board, cut: Cut) -> list[str]:
    return notes(board, cut, standings(board, cut))


def test_scores_and_worst_cases() -> None:
    assert score(Score(None)) == case(Score(None), False) == "–"
    untouched = worst([make_cell(status="n/a")])
    assert (score(untouched), case(untouched, False)) == ("n/a", "no attack could start")
    found = worst([make_cell(seeds=(4,), score=0.5)])
    assert (score(found), case(found, True)) == ("0.50", "dlg: server, adaptive, on digits")


def test_counts_come_in_order_and_costs_beside_fedavg() -> None:
    assert counts({"failed": 1, "ok": 12, "odd": 2, "n/a": 3}) == "12 ok, 3 n/a, 1 failed, 2 odd"
    assert (counts({}), times(None), times(1.5)) == ("none", "–", "1.50 ×")


def test_seeds_say_what_they_can_tell() -> None:
    assert "no interval" in seeds(make_board(seeds=(3,)))
    assert "nothing was measured" in seeds(make_board(seeds=()))
    assert "3 seeds (0, 1, 2)" in seeds(make_board())


def test_records_of_several_versions_are_told() -> None:
    board = replace(make_board(), made={"commit": "abc, def", "torch": "2.13.0", "fedarena": ""})
    assert told(board, Cut()) == ["measured by 2 commits: abc, def"]


def test_notes_hold_damage_subsets_marks_and_finders() -> None:
    text = "\n".join(told(big_board(), Cut()))
    assert "1 damaged record left out" in text
    assert "fashion: a subset of the data, 100 of 60000 images" in text
    assert "baffle: simulated: secure sums are added in the clear" in text
    assert "fashion" not in "\n".join(told(big_board(), Cut(problems=("digits",))))
    assert unmeasured(make_board(), Cut()) == [
        "a curious client",
        "a curious eavesdropper",
        "a curious outsider",
        "corrupted clients (omniscient)",
    ]
    assert told(make_board(), read_cut("server,own")) == []
    found = make_board([make_cell(found_by="A. Reader")])
    assert "attacks by others: dlg (A. Reader)" in told(found, read_cut("server"))


LOST = "recovered gradients lost up to 5.6 of their decimal digits to rounding"


def test_a_defense_whose_runs_are_marked_has_a_sign_and_the_notes_say_which_runs() -> None:
    arenas = (make_arena(), make_arena(name="model"))
    runs = [make_honest(d, problem=p) for d in ("fedavg", "pbpfl", "baffle", "dbcl") for p in ("digits", "model")]
    runs = [replace(h, marks=(LOST,)) if (h.defense, h.problem) == ("pbpfl", "model") else h for h in runs]
    runs = [replace(h, marks=("simulated",)) if h.defense == "baffle" else h for h in runs]
    cells = [make_cell(d, axis="integrity", attack="alie") for d in ("fedavg", "pbpfl", "baffle", "dbcl")]
    cells[-1] = replace(cells[-1], marks=("diverged",))  # of the poisoned run alone
    board = make_board(cells, runs, arenas=arenas)
    every = {row.defense: labelled(row) for row in standings(board, Cut())}
    assert every == {"fedavg": "fedavg", "pbpfl": "pbpfl †", "baffle": "baffle †", "dbcl": "dbcl †"}
    assert marks(board) == [f"† pbpfl on model: {LOST}", "† baffle: simulated", "† dbcl on digits: diverged"]
    cut = Cut(knows=(), problems=("digits",))
    assert {row.defense: labelled(row) for row in standings(board, cut)} == {**every, "pbpfl": "pbpfl", "dbcl": "dbcl"}
    assert marks(board, cut) == ["† baffle: simulated"]


def test_an_overall_score_over_fewer_seeds_than_its_parts_is_told() -> None:
    """A reader who takes the mean of what stands beside it gets another number."""
    left = make_cell("dbcl", "sign-flip", 0.3, (0,), axis="integrity")
    cells = [make_cell("dbcl"), left, make_cell(), make_cell(attack="sign-flip", axis="integrity")]
    found = told(make_board(cells), read_cut("server,own"))
    assert found == ["dbcl: overall is over 1 of 3 seeds, since on others it has no integrity"]


def test_problems_that_count_in_no_score_are_told() -> None:
    cells = [make_cell(), replace(make_cell(attack="model-inversion"), counts=False, problem="model")]
    board = make_board(cells)
    board = replace(board, arenas=(*board.arenas, replace(board.arenas[0], name="model")))
    assert "model: its attacks are on the board and count in no score" in told(board, Cut())
    assert not any("digits: its" in note for note in told(board, Cut()))
