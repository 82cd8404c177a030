"""A board that lost scores, or is of another experiment, does not pass: whatever was taken out or changed is named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from helpers.board import make_board, make_cell, make_clean_run, make_problem
from helpers.gate import change_cells, change_clean_runs, wide_board

from fedarena.board.board import Board, BoardCell
from fedarena.board.gate.compare import compare
from fedarena.board.gate.wording import verdict

BASE = replace(
    wide_board(2, 6),
    cells=tuple(replace(c, defense_settings="dddd") for c in wide_board(2, 6).cells),
)
FIRST, HONEST = "digits · fedavg · attack0 · corrupted clients (own), paper", "digits · defense1 · clean run"
Tamper = Callable[[Board], Board]


def cell(change: Callable[[BoardCell], BoardCell]) -> Tamper:
    """Of the first cell alone."""
    return lambda board: change_cells(board, lambda c: change(c) if c.place == BASE.cells[0].place else c)


def honest(**changes: Any) -> Tamper:
    """Of the second clean run alone."""
    return lambda board: change_clean_runs(board, lambda h: replace(h, **changes) if h.defense == "defense1" else h)


def arena(**changes: Any) -> Tamper:
    return lambda board: replace(board, problems=tuple(replace(a, **changes) for a in board.problems))


def findings(base: Board, new: Board) -> dict[str, list[str]]:
    """Place → findings."""
    return {item.name: item.findings for item in compare(base, new).findings}


def no_seed(c: BoardCell, seed: int) -> BoardCell:
    return replace(c, scores={s: v for s, v in c.scores.items() if s != seed})


UTILITY = BASE.clean_runs[1].utility
ANOTHER = "another experiment: {}, so that its score is not compared"
TAMPERED: list[tuple[Tamper, str, str]] = [
    (cell(lambda c: replace(c, scores={})), FIRST, "measured nothing: no score of seeds 0, 1, 2"),
    (cell(lambda c: no_seed(c, 2)), FIRST, "measured nothing: no score of seed 2"),
    (honest(utility={}), HONEST, "measured nothing: no utility of seeds 0, 1, 2"),
    (
        honest(utility={s: v for s, v in UTILITY.items() if s != 1}),
        HONEST,
        "measured nothing: no utility of seed 1",
    ),
    (cell(lambda c: replace(c, settings="")), FIRST, "perhaps another experiment: the digest of its options is gone"),
    (
        cell(lambda c: replace(c, defense_settings="")),
        FIRST,
        "perhaps another experiment: the digest of its defense is gone",
    ),
    (cell(lambda c: replace(c, settings="bbbb")), FIRST, ANOTHER.format("options or problem differ")),
    (cell(lambda c: replace(c, defense_settings="bbbb")), FIRST, ANOTHER.format("options or problem differ")),
    (cell(lambda c: replace(c, axis="privacy")), FIRST, ANOTHER.format("axis integrity → privacy")),
    (cell(lambda c: replace(c, counts=False)), FIRST, "it counts in no score now"),
    (cell(lambda c: replace(c, found_by="A. Reader")), FIRST, "contributed by this package → A. Reader"),
    (cell(lambda c: replace(c, goal="labels")), FIRST, ANOTHER.format("goal none → labels")),
    (honest(bytes_up=0.0), HONEST, "no bytes up per client and round: 4,000 → 0"),
    (honest(bytes_down=0.0), HONEST, "no bytes down per client and round: 4,000 → 0"),
    (honest(warnings=("simulated",)), HONEST, "new warning: simulated"),
    (arena(dataset="mnist"), "problem digits", "another problem: data set digits → mnist"),
    (arena(measure="R2"), "problem digits", "another problem: measure accuracy → R2"),
    (arena(chance=0.1 + 2e-6), "problem digits", "another problem: chance 0.1 → 0.100002"),
    (arena(subset="half"), "problem digits", "another problem: subset of the data none → half"),
    (arena(utility=False), "problem digits", "its accuracy does not count as utility now"),
    (lambda b: replace(b, problems=()), "problem digits", "missing: the new board does not have this problem"),
]


@pytest.mark.parametrize(("tamper", "where", "words"), TAMPERED, ids=[words for *_, words in TAMPERED])
def test_a_removed_or_changed_field_is_a_finding(tamper: Tamper, where: str, words: str) -> None:
    assert findings(BASE, BASE) == {}
    assert findings(BASE, tamper(BASE)) == {where: [words]}


def test_another_description_is_reported_and_no_finding() -> None:
    changed = arena(description="digits, 1000 clients")(BASE)
    (item,) = (i for i in compare(BASE, changed).items if i.name == "problem digits")
    assert item.findings == []
    assert item.changes[0].words.endswith("→ digits, 1000 clients")


def test_a_board_without_scores_is_a_finding() -> None:
    empty = change_cells(BASE, lambda c: replace(c, scores={}))
    found = findings(BASE, empty)
    assert list(found.values()) == [["measured nothing: no score of seeds 0, 1, 2"]] * len(BASE.cells)
    # Privacy always has a score; integrity has none where nothing was learned.
    words = "board measured nothing in any cell: 8 of 12 failed or have no score"
    assert findings(empty, empty) == {"the boards as a whole": [f"the base {words}", f"the new {words}"]}


def test_every_loss_is_reported_once() -> None:
    """A seed that failed, or is missing, has no score either."""
    base = make_board([make_cell("dbcl", "dlg", 0.5)])
    failed = make_cell("dbcl", "dlg", status="failed", reason="why")
    fewer = replace(base.cells[0], statuses={0: "ok", 1: "missing"}, scores={0: 0.5}, status="mixed")
    for cells, words in (
        ([failed], "measured nothing: ok → failed (why)"),
        ([fewer], "fewer seeds: the new board lacks seeds 1, 2"),
    ):
        assert list(findings(base, replace(base, cells=tuple(cells))).values()) == [[words]]
    seeds = {0: 0.9, 1: 0.9}
    fewer_runs = change_clean_runs(base, lambda h: replace(h, accuracy=seeds, utility=seeds))
    assert {w for words in findings(base, fewer_runs).values() for w in words} >= {
        "fewer seeds: the new board lacks seed 2"
    }
    assert not any("utility" in w for words in findings(base, fewer_runs).values() for w in words)


def test_a_cell_without_a_score_before_needs_none_now() -> None:
    """A clean run that learned nothing leaves nothing to break."""
    bare = cell(lambda c: replace(c, scores={}))(BASE)
    assert findings(bare, bare) == {}
    assert findings(bare, BASE) == {}
    one = cell(lambda c: no_seed(c, 2))(BASE)
    assert findings(one, one) == {}
    aside = change_clean_runs(BASE, lambda h: replace(h, utility={}))
    assert findings(aside, aside) == {}


def test_a_refused_cell_has_no_known_options() -> None:
    refused = make_board([make_cell("dbcl", "dlg", status="n/a", settings=""), make_cell("fedavg", "dlg", 0.1)])
    tried = make_board([make_cell("dbcl", "dlg", status="n/a"), make_cell("fedavg", "dlg", 0.1)])
    assert findings(tried, refused) == findings(refused, tried) == {}


def test_digests_that_the_base_lacks_are_reported() -> None:
    older = change_cells(BASE, lambda c: replace(c, settings="", defense_settings=""))
    found = compare(older, BASE)
    assert found.findings == []
    assert {f.words for item in found.items for f in item.changes} == {
        "perhaps another experiment: the base has no digest of its options",
        "perhaps another experiment: the base has no digest of its defense",
    }


def test_a_reworded_warning_is_reported_and_a_missing_one_is_a_finding() -> None:
    base, other = (
        change_clean_runs(BASE, lambda h, m=mark: replace(h, warnings=(m,))) for mark in ("simulated", "in a play")
    )
    assert compare(base, other).findings == []
    assert len([f for item in compare(base, other).items for f in item.changes]) == 4
    assert findings(base, BASE)[HONEST] == ["warning gone: simulated"]


def test_rounding_and_another_description_make_no_other_problem() -> None:
    assert findings(BASE, arena(chance=0.1 + 5e-7, description="the same in other words")(BASE)) == {}
    unmeasured = arena(dataset="", description="nothing measured", chance=0.0)(BASE)
    assert findings(unmeasured, BASE) == findings(BASE, unmeasured) == {}


def test_a_board_of_failures_does_not_pass() -> None:
    """Its clean runs have their scores, and two empty cells are equal."""
    failed = make_board([make_cell(d, "dlg", status="failed") for d in ("dbcl", "fedavg")])
    found = findings(failed, failed)
    assert found == {
        "the boards as a whole": [
            f"the {role} board measured nothing in any cell: 2 of 2 failed or have no score" for role in ("base", "new")
        ]
    }
    assert verdict(compare(failed, failed)) == "Failed: 1 other finding."
    broken = make_board(clean_runs=[make_clean_run(status="failed", accuracy={}, utility={})])
    words = "board measured no clean run: 1 of 1 failed or are missing"
    assert findings(broken, broken) == {"the boards as a whole": [f"the base {words}", f"the new {words}"]}


def test_an_attack_that_could_not_start_is_a_result() -> None:
    nothing = make_board([make_cell("dbcl", "dlg", status="n/a")])
    assert findings(nothing, nothing) == {}
    unlearned = make_board([make_cell("dbcl", "sign-flip", axis="integrity", scores={})], problems=(make_problem(),))
    assert findings(unlearned, unlearned) == {}
