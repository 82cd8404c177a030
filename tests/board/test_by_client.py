"""Accuracy by client on boards: written only where clients differ, and in the report's table of clean runs."""

from __future__ import annotations

from pathlib import Path

from helpers.board import make_board, make_clean_run

from fedarena.board.published import from_json, to_json
from fedarena.board.report.clean_run_table import BY_CLIENT, MEANS, clean_run_table


def test_boards_of_clients_that_are_alike_stay_as_they_were() -> None:
    board = make_board(clean_runs=(make_clean_run(),))
    assert "client_mean" not in to_json(board)
    assert BY_CLIENT not in clean_run_table(board)
    assert MEANS not in clean_run_table(board)


def test_accuracies_by_client_are_published_and_shown() -> None:
    skewed = make_clean_run(client_mean={0: 0.5, 1: 0.7}, client_lowest_decile={0: 0.25, 1: 0.25})
    board = make_board(clean_runs=(skewed, make_clean_run("krum")))
    assert from_json(to_json(board), Path("board.json")).clean_runs == board.clean_runs
    shown = clean_run_table(board)
    (fedavg,) = [line for line in shown.splitlines() if line.startswith("| digits | fedavg ")]
    (krum,) = [line for line in shown.splitlines() if line.startswith("| digits | krum ")]
    assert "60 %" in fedavg
    assert "25 ± 0 %" in fedavg
    assert fedavg.count("|") == krum.count("|")
    assert MEANS in shown
