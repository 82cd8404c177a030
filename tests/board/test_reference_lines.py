"""The references without a federation as text, and the sentence that says by what a board is ranked."""

from __future__ import annotations

from dataclasses import replace

import pytest
from helpers.board import make_board, make_clean_run, make_problem, with_references, without_references

from fedarena.board.rank_rule import rank_rule
from fedarena.board.reference_lines import reference_lines
from fedarena.board.threat_filter import ThreatFilter


def test_boards_that_were_measured_without_references_have_none() -> None:
    assert reference_lines(without_references(make_board()), ThreatFilter()) == []


def test_a_reference_has_its_accuracy_and_scores_by_definition() -> None:
    lines = reference_lines(with_references(make_board(), 0.6, {"two-stage": 0.7, "dbcl": 0.2}), ThreatFilter())
    assert [line.cells for line in lines] == [
        ("constant", "always the most frequent class", "10 %", "0", "–", "1"),
        ("local-only", "each client trains alone", "60 ± 0 %", "0", "–", "1"),
        (
            "server-only",
            "a server trains on its own samples alone (that of two-stage, the best)",
            "70 ± 0 %",
            "0",
            "–",
            "1",
        ),
    ]


def test_of_several_problems_it_has_the_mean_and_each() -> None:
    problems = (make_problem(), make_problem(name="other", chance=0.5))
    honest = [make_clean_run("fedavg"), make_clean_run("fedavg", problem="other")]
    board = with_references(make_board([], honest, problems=problems), 0.6)
    constant, alone = reference_lines(board, ThreatFilter())
    assert constant.accuracy == "30 % (digits 10 %, other 50 %)"
    assert alone.accuracy == "60 % (digits 60 ± 0 %, other 60 ± 0 %)"
    assert reference_lines(board, ThreatFilter(problems=("other",)))[0].accuracy == "50 %"
    numbers = replace(board, problems=(board.problems[0], replace(board.problems[1], measure="R2")))
    assert reference_lines(numbers, ThreatFilter())[0].accuracy == "digits 10 %, other 0.50"  # no mean of both


@pytest.mark.parametrize(
    ("axes", "weights", "text"),
    [
        (("utility",), None, "Ranked by utility."),
        (
            ("utility", "privacy"),
            None,
            "Ranked by the lowest of utility and privacy. Among equals the next lowest decides.",
        ),
        (
            ("utility", "integrity", "privacy"),
            {"privacy": 0.5, "utility": 2.0, "integrity": 0.0},
            "Ranked by the weighted mean of utility (weight 2) and privacy (weight 0.5). The mean of all breaks ties.",
        ),
    ],
)
def test_the_rule_names_what_decides(axes: tuple[str, ...], weights: dict[str, float] | None, text: str) -> None:
    assert rank_rule(axes, weights) == text
