"""The board as CSV."""

from __future__ import annotations

import csv
import io

import pytest
from helpers.big_board import big_board
from helpers.board import make_board, make_cell, with_references, without_references

from fedarena.board.board import Board
from fedarena.board.frame import to_csv
from fedarena.core.text.numbers import mean


def read(board: Board) -> list[dict[str, str]]:
    """The rows; those of references have a test of their own."""
    return read_all(without_references(board))


def read_all(board: Board) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(to_csv(board), newline="")))


def test_each_cell_and_each_clean_run_has_a_row_with_exact_numbers() -> None:
    board = big_board()
    rows = read(board)
    assert len(rows) == len(board.clean_runs) + len(board.cells)
    for row, cell in zip(rows[len(board.clean_runs) :], board.cells, strict=True):
        for name in ("problem", "defense", "attack", "axis", "party", "form", "knows", "status", "reason", "command"):
            assert row[name] == getattr(cell, name)
        assert {s: float(row[f"score {s}"]) for s in cell.scores} == cell.scores
        assert {s: row[f"status {s}"] for s in cell.statuses} == cell.statuses
        assert {s: row[f"key {s}"] for s in cell.keys} == cell.keys
        if cell.scores:
            found = mean(list(cell.scores.values()))
            assert (float(row["score"]), float(row["half"]), int(row["seeds"])) == (found.value, found.half, 5)
        else:
            assert (row["score"], row["half"], row["seeds"]) == ("", "", "0")
    honest = rows[0]
    assert (honest["axis"], honest["defense"], honest["bytes_up"]) == ("utility", "fedavg", "4000.0")
    assert float(honest["score 3"]) == board.clean_runs[0].utility[3]


def test_references_and_reasons_for_exclusion_have_their_place() -> None:
    cell = make_cell(counts=False, excluded="untuned: z")
    rows = read_all(with_references(make_board([cell]), 0.75))
    found = [(r["defense"], r["problem"], r["accuracy"], r["score"]) for r in rows if r["status"] == "reference"]
    assert found == [("constant", "digits", "0.1", "0.0"), ("local-only", "digits", "0.75", "0.0")]
    assert (rows[-1]["counts"], rows[-1]["excluded"]) == ("False", "untuned: z")
    assert float(rows[0]["accuracy"]) == pytest.approx(0.91)


def test_one_seed_has_no_half_width() -> None:
    row = read(make_board([make_cell(seeds=(7,))], [], seeds=(7,)))[0]
    assert (row["half"], row["score 7"]) == ("", "0.5")


def test_seeds_that_the_board_did_not_plan_have_their_column() -> None:
    assert read(make_board([make_cell(seeds=(9,))], [], seeds=(0,)))[0]["score 9"] == "0.5"


@pytest.mark.parametrize("name", ["=1+1", "+x", "-x", "@x", "\tx"])
def test_text_cannot_become_a_formula(name: str) -> None:
    row = read(make_board([make_cell(defense=name)], []))[0]
    assert row["defense"] == f"'{name}"


def test_commas_quotes_and_lines_survive() -> None:
    reason = 'ValueError: "a", b\nand c'
    assert read(make_board([make_cell(status="failed", reason=reason)], []))[0]["reason"] == reason


def test_an_empty_board_is_a_heading() -> None:
    assert read(make_board([], [])) == []
    assert to_csv(make_board([], [])).startswith("problem,defense,attack,axis")
