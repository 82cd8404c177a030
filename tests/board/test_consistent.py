"""Published boards on which somebody changed a number: whichever it was, the score does not follow any more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from helpers.board import consistent, make_board, make_cell
from helpers.paths import REPORTS

from fedarena.board.board import Board, BoardCell, CleanRun, ProblemInfo
from fedarena.board.consistent import contradictions
from fedarena.board.load import load_board

PUBLISHED = ("baseline", "digits", "heterogeneous", "iid")


@pytest.fixture(scope="module", params=PUBLISHED)
def board(request: pytest.FixtureRequest) -> Board:
    return load_board(REPORTS / request.param)


def test_published_boards_have_no_contradiction(board: Board) -> None:
    assert list(contradictions(board)) == []


def test_the_board_without_a_server_has_none() -> None:
    assert list(contradictions(load_board(REPORTS / "graph"))) == []


def cells(board: Board, change: Callable[[BoardCell], BoardCell], axis: str) -> Board:
    """With `change` applied to the first cell of that axis that has a score between 0 and 1 in seed 0."""
    first = next(c for c in board.cells if c.axis == axis and 0.05 < c.scores.get(0, 0.0) < 0.95)
    return replace(board, cells=tuple(change(c) if c is first else c for c in board.cells))


@pytest.mark.parametrize("axis", ["privacy", "integrity"])
def test_a_score_that_was_raised_is_found(board: Board, axis: str) -> None:
    edited = cells(board, lambda c: replace(c, scores={**c.scores, 0: c.scores[0] + 0.01}), axis)
    (text,) = contradictions(edited)
    assert "score of seed 0 is" in text
    assert "and its metrics give" in text


@pytest.mark.parametrize("axis", ["privacy", "integrity"])
def test_removed_metrics_are_found(board: Board, axis: str) -> None:
    (text,) = contradictions(cells(board, lambda c: replace(c, metrics={}), axis))
    assert "metrics has no " in text
    assert text.endswith("of seed 0, from which its score follows")


def test_edited_accuracies_of_fedavg_are_found(board: Board) -> None:
    def lower(a: ProblemInfo) -> ProblemInfo:
        return replace(a, reference_accuracy={s: v - 0.1 for s, v in a.reference_accuracy.items()})

    text = list(contradictions(replace(board, problems=tuple(map(lower, board.problems)))))
    for arena in board.problems:
        assert any(one.startswith(f"{arena.name} · fedavg") and "its problem has" in one for one in text)
    assert any("utility of seed 0 is" in one for one in text)


def test_an_edited_clean_accuracy_is_found(board: Board) -> None:
    def lower(h: CleanRun) -> CleanRun:
        return replace(h, accuracy={s: v / 2 for s, v in h.accuracy.items()}) if h.defense == "median" else h

    text = list(contradictions(replace(board, clean_runs=tuple(map(lower, board.clean_runs)))))
    assert any("median · clean run: utility of seed 0" in one for one in text)
    assert any("· median · " in one and "score of seed " in one for one in text)


def test_a_score_against_a_model_that_learned_nothing_is_found() -> None:
    board = consistent(make_board([make_cell("dbcl", "sign-flip", axis="integrity")]))
    assert list(contradictions(board)) == []
    runs = (replace(h, accuracy=dict.fromkeys(h.accuracy, 0.1), utility={}) for h in board.clean_runs)
    problems = (replace(a, reference_accuracy=dict.fromkeys(a.reference_accuracy, 0.1)) for a in board.problems)
    edited = replace(board, clean_runs=tuple(runs), problems=tuple(problems))
    (text,) = contradictions(edited)
    assert "its clean run learned nothing" in text


def test_a_poisoning_cell_without_a_clean_run_is_not_checked() -> None:
    board = make_board([make_cell("dbcl", "sign-flip", axis="integrity")])
    assert list(contradictions(replace(board, clean_runs=()))) == []


def test_a_poisoning_cell_without_fedavgs_clean_run_is_not_checked() -> None:
    board = make_board([make_cell("dbcl", "sign-flip", axis="integrity")])
    problems = tuple(replace(a, reference_accuracy={}) for a in board.problems)
    assert list(contradictions(replace(board, problems=problems))) == []
