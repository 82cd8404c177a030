"""The tables of cells."""

from __future__ import annotations

from helpers.board import make_board, make_cell

from fedarena.board.report.attack_tables import attack_tables, goals_of, metrics


def test_a_certain_auc_has_the_judge_s_interval_or_none() -> None:
    certain = {"auc": {0: 1.0, 1: 1.0}}
    judged = {**certain, "auc_low": {0: 0.8, 1: 0.8}, "auc_high": {0: 1.0, 1: 1.0}}
    assert metrics(make_cell(metrics=judged)) == "AUC 1.00 (0.86 to 1.00)"
    assert metrics(make_cell(metrics=certain)) == "AUC 1.00"


def test_a_share_without_the_judge_s_interval_has_that_over_seeds() -> None:
    assert metrics(make_cell(metrics={"recovered": {0: 0.4, 1: 0.5, 2: 0.6}})) == "recovered 0.50 ± 0.25"


def test_an_excluded_cell_says_why_it_does_not_count() -> None:
    cell = make_cell(counts=False, excluded="uninformative: it reaches 12 %")
    assert "ok; does not count in scores (uninformative: it reaches 12 %)" in attack_tables(
        make_board([cell]), [cell.attack]
    )
    assert "ok; does not count in scores |" in attack_tables(make_board([make_cell(counts=False)]), [cell.attack])


def test_each_attack_has_one_goal() -> None:
    cells = [make_cell(attack="dlg"), make_cell(attack="who", goal="membership"), make_cell(attack="who")]
    cells.append(make_cell(attack="sign-flip", axis="integrity"))
    assert goals_of(make_board(cells)) == {"reconstruction": ["dlg"], "membership": ["who"], "poisoning": ["sign-flip"]}
