"""Whole boards: planted regressions are found, by name, and nothing else is."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from helpers.board import make_board, make_cell, make_clean_run, make_problem
from helpers.gate import change_cells, change_clean_runs, wide_board
from hypothesis import given, settings
from hypothesis import strategies as st

from fedarena.board.board import Board, BoardCell
from fedarena.board.gate.compare import compare
from fedarena.board.gate.comparison import Comparison, Item, Rules
from fedarena.board.gate.inert import NO_DEFENSE
from fedarena.board.gate.wording import caveats, notes, tally, verdict

BASE = wide_board()


def findings(c: Comparison) -> dict[str, list[str]]:
    """Place → findings."""
    return {item.name: item.findings for item in c.findings}


def outcomes(c: Comparison, defense: str) -> set[str]:
    """What became of a defense's cells."""
    return {i.verdict.outcome for i in c.items if i.group == "cell" and i.verdict and f"· {defense} ·" in i.name}


@given(st.integers(0, 50), st.integers(1, 5), st.floats(0, 0.3))
@settings(max_examples=15, deadline=None)
def test_a_board_has_no_finding_against_itself(stream: int, seeds: int, noise: float) -> None:
    board = wide_board(3, 6, seeds, stream, noise)
    found = compare(board, board)
    assert found.findings == []
    assert found.counts["identical"] == 18 + 3
    assert verdict(found) == "Passed: all 21 scores are identical."


@given(st.randoms(use_true_random=False), st.integers(2, 5))
@settings(max_examples=15, deadline=None)
def test_the_order_of_cells_and_seeds_does_not_matter(order: Random, seeds: int) -> None:
    base, new = wide_board(4, 9, seeds, 1), wide_board(4, 9, seeds, 2)
    new = change_cells(new, lambda c: lowered(c, 0.3) if c.defense == "defense2" else c)
    cells = list(new.cells)
    order.shuffle(cells)

    def reversed_seeds(c: BoardCell) -> BoardCell:
        return replace(c, scores=dict(reversed(c.scores.items())), statuses=dict(reversed(c.statuses.items())))

    mixed = change_cells(replace(new, cells=tuple(cells)), reversed_seeds)
    assert compare(base, mixed).items == compare(base, new).items
    rows = list(base.cells)
    order.shuffle(rows)
    other = compare(replace(base, cells=tuple(rows)), new)
    assert {i.name: i for i in other.items} == {i.name: i for i in compare(base, new).items}


@given(st.integers(0, 50), st.integers(2, 5), st.floats(0.01, 0.3))
@settings(max_examples=15, deadline=None)
def test_swapped_boards_swap_losses_and_gains(stream: int, seeds: int, noise: float) -> None:
    base, new = wide_board(4, 9, seeds, 2 * stream, noise), wide_board(4, 9, seeds, 2 * stream + 1, noise)
    new = change_cells(new, lambda c: lowered(c, 0.4) if c.defense == "defense1" else c)
    there, back = compare(base, new), compare(new, base)
    mirror = {"loss": "gain", "gain": "loss", "noise": "noise", "identical": "identical", "unknown": "unknown"}
    for one, other in zip(there.items, back.items, strict=True):
        assert one.verdict is not None
        assert other.verdict is not None
        assert mirror[one.verdict.outcome] == other.verdict.outcome
        assert one.verdict.p == pytest.approx(other.verdict.p)


def lowered(c: BoardCell, by: float) -> BoardCell:
    return replace(c, scores={s: max(0.0, v - by) for s, v in c.scores.items()})


def test_a_defense_replaced_by_fedavg_is_a_finding() -> None:
    plain = {(c.attack): c for c in BASE.cells if c.defense == "fedavg"}
    honest = BASE.clean_runs[0]

    def replaced(c: BoardCell) -> BoardCell:
        return replace(c, scores=plain[c.attack].scores) if c.defense == "defense3" else c

    new = change_cells(BASE, replaced)
    new = change_clean_runs(
        new, lambda h: replace(h, accuracy=honest.accuracy, utility=honest.utility) if h.defense == "defense3" else h
    )
    found = compare(BASE, new)
    assert NO_DEFENSE in findings(found)["digits · defense3 · clean run"]
    moved = {i.name for i in found.findings if i.group == "cell"}
    assert all("· defense3 ·" in name for name in moved)
    verdicts = [(i.name, i.verdict) for i in found.items if i.group == "cell" and i.verdict]
    far = {name for name, v in verdicts if abs(v.contrast.difference) > 0.15}
    assert len(far) >= 2
    assert far <= moved
    assert outcomes(found, "defense2") == {"identical"}


def test_fedavg_and_a_defense_that_equalled_it_are_no_findings() -> None:
    same = change_clean_runs(BASE, lambda h: replace(h, accuracy=BASE.clean_runs[0].accuracy))
    assert compare(same, same).findings == []
    assert [i.findings for i in compare(BASE, same).findings] == [[NO_DEFENSE]] * 5


def test_an_attack_without_effect_raises_scores() -> None:
    def inert(c: BoardCell) -> BoardCell:
        return replace(c, scores=dict.fromkeys(c.scores, 1.0)) if c.attack == "attack7" else c

    found = compare(BASE, change_cells(BASE, inert))
    assert len(found.findings) >= 6
    assert {w for f in found.findings for w in f.findings} == {"weaker attack, or stronger defense"}
    assert all("attack7" in name for name in findings(found))
    assert compare(BASE, change_cells(BASE, inert), Rules(losses_only=True)).findings == []


def test_a_leaking_view_lowers_scores() -> None:
    """One party's scores on one defense fall to 0."""

    def leaks(c: BoardCell) -> BoardCell:
        mine = c.defense == "defense2" and c.axis == "privacy"
        return replace(c, scores=dict.fromkeys(c.scores, 0.0)) if mine else c

    found = compare(BASE, change_cells(BASE, leaks))
    assert {w for f in found.findings for w in f.findings} == {"weaker defense, or stronger attack"}
    assert len([f for f in found.findings if f.group == "cell"]) == 8
    assert any(f.group == "mean" and f.name.startswith("defense defense2 · privacy") for f in found.findings)


def test_a_small_change_everywhere_shows_in_the_mean_alone() -> None:
    found = compare(BASE, change_cells(BASE, lambda c: lowered(c, 0.03) if c.defense == "defense4" else c))
    assert {f.group for f in found.findings} == {"mean"}
    assert set(findings(found)) == {
        "defense defense4 · privacy, mean over 7 cells",
    }


def test_equal_cells_in_two_forms_count_once_in_a_mean() -> None:
    """An adaptive attack that can do no more than the paper's gives the same number: a leap of it is one leap."""
    base = wide_board(4, 9)
    place = ("defense2", "attack7")

    def doubled(board: Board) -> Board:
        again = [replace(c, form="paper") for c in board.cells if (c.defense, c.attack) == place]
        return replace(board, cells=(*board.cells, *again, *(replace(c, problem="other") for c in again)))

    def leap(c: BoardCell) -> BoardCell:
        quiet = {s: v + 1e-4 * (s + 1) for s, v in c.scores.items()}
        return lowered(c, 0.25) if (c.defense, c.attack) == place else replace(c, scores=quiet)

    alone, thrice = (compare(b, change_cells(b, leap)) for b in (base, doubled(base)))

    def mean_of(found: Comparison) -> Item:
        return next(i for i in found.items if i.name.startswith("defense defense2 · privacy, mean"))

    assert mean_of(alone).verdict is not None
    assert mean_of(thrice).name == mean_of(alone).name
    assert mean_of(thrice).verdict == mean_of(alone).verdict
    assert not mean_of(thrice).findings


def test_one_cell_alone_does_not_move_a_mean() -> None:
    """The cell that moved most is left out: others stand still, to the bit or by rounding."""

    def one(c: BoardCell) -> BoardCell:
        if c.defense != "defense4":
            return c
        return lowered(c, 0.3 if c.attack == "attack9" else 1e-9)

    found = compare(BASE, change_cells(BASE, one))
    assert set(findings(found)) == {"digits · defense4 · attack9 · server, adaptive"}


@pytest.mark.parametrize(
    ("now", "words"),
    [
        ("failed", "measured nothing: ok → failed (the disk was full)"),
        ("n/a", "measured nothing: ok → n/a (the disk was full)"),
        ("diverged", "another outcome: ok → diverged (the disk was full)"),
    ],
)
def test_a_changed_status_is_reported(now: str, words: str) -> None:
    base = make_board([make_cell("dbcl", "dlg", 0.5)])
    new = make_board([make_cell("dbcl", "dlg", 0.5, status=now, reason="the disk was full")])
    assert findings(compare(base, new)) == {"digits · dbcl · dlg · server, adaptive": [words]}


def test_a_changed_status_of_one_seed_names_the_seed() -> None:
    base = make_board([make_cell("dbcl", "dlg", 0.5)])
    cell = make_cell("dbcl", "dlg", 0.5, status="mixed", reason="seed 1: failed")
    cell = replace(cell, statuses={0: "ok", 1: "failed", 2: "ok"}, scores={0: 0.49, 2: 0.51})
    found = compare(base, make_board([cell]))
    assert [i.findings for i in found.findings] == [["seed 1: measured nothing: ok → failed (seed 1: failed)"]]


def test_a_leak_where_no_attack_could_start_is_a_finding() -> None:
    nothing = make_board([make_cell("dbcl", "dlg", 0.5, status="n/a")])
    for score, finding in ((0.7, True), (1.0, False)):
        new = make_board([make_cell("dbcl", "dlg", [score] * 3)])
        assert bool(compare(nothing, new).findings) is finding
    assert compare(nothing, nothing).findings == []
    # Of what was refused before it ran, no settings are known.
    refused = change_cells(nothing, lambda c: replace(c, settings=""))
    words = compare(refused, make_board([make_cell("dbcl", "dlg", [0.7] * 3)])).findings[0].findings
    assert words == ["something leaks now: n/a → ok with a score of 0.700"]


def test_a_cell_that_works_again_is_reported_and_no_finding() -> None:
    base = make_board([make_cell("dbcl", "dlg", 0.5, status="failed"), make_cell("fedavg", "dlg", 0.1)])
    new = make_board([make_cell("dbcl", "dlg", 0.5), make_cell("fedavg", "dlg", 0.1)])
    found = compare(base, new)
    assert found.findings == []
    assert [f.words for i in found.items for f in i.changes] == ["measured now: failed → ok"]


def test_a_cell_that_failed_on_both_boards_is_reported() -> None:
    board = make_board([make_cell("dbcl", "dlg", 0.5, status="failed"), make_cell("fedavg", "dlg", 0.1)])
    found = compare(board, board)
    assert found.findings == []
    assert [f.words for i in found.items for f in i.changes] == ["failed on both boards"]


@pytest.mark.parametrize("gone", ["absent", "missing"])
def test_a_missing_cell_is_a_finding(gone: str) -> None:
    cells = list(BASE.cells)
    last = cells.pop()
    if gone == "missing":
        cells.append(replace(last, status="missing", scores={}, statuses=dict.fromkeys(last.statuses, "missing")))
    found = compare(BASE, replace(BASE, cells=tuple(cells)))
    assert [i.findings for i in found.findings] == [["missing: the new board does not have this cell"]]
    back = compare(replace(BASE, cells=tuple(cells)), BASE)
    assert back.findings == []
    assert back.added == ("digits · defense5 · attack11 · server, adaptive",)


def test_a_missing_clean_run_is_a_finding() -> None:
    found = compare(BASE, replace(BASE, clean_runs=BASE.clean_runs[:-1]))
    assert findings(found) == {"digits · defense5 · clean run": ["missing: the new board does not have this clean run"]}


def test_missing_seeds_are_a_finding() -> None:
    def fewer(c: BoardCell) -> BoardCell:
        return replace(c, scores={0: c.scores[0]}, statuses={0: "ok", 1: "missing"})

    found = compare(BASE, change_cells(BASE, fewer))
    assert len(found.findings) == len(BASE.cells)
    assert {w for f in found.findings for w in f.findings} == {"fewer seeds: the new board lacks seeds 1, 2"}
    assert compare(change_cells(BASE, fewer), BASE).findings == []


def test_another_experiment_is_not_compared() -> None:
    new = change_cells(BASE, lambda c: replace(lowered(c, 0.5), settings="bbbb") if c.defense == "defense1" else c)
    found = compare(BASE, new)
    assert {w for f in found.findings for w in f.findings} == {
        "another experiment: options or problem differ, so that its score is not compared"
    }
    assert outcomes(found, "defense1") == set()


def test_changed_versions_are_reported() -> None:
    found = compare(BASE, change_cells(BASE, lambda c: replace(c, versions={"defense": 2, "attack": 1})))
    assert found.findings == []
    assert {f.words for i in found.items for f in i.changes} == {"versions of methods: defense 1 → 2"}


def test_other_guarantees_and_more_bytes_are_findings() -> None:
    base = make_board(
        clean_runs=[make_clean_run("dbcl", guarantees={"epsilon": 2.0}, bytes_up=1000.0, bytes_down=1000.0)]
    )
    found = {
        "rounding": make_clean_run("dbcl", guarantees={"epsilon": 2.0 + 1e-12}, bytes_up=1009.0, bytes_down=995.0),
        "weaker": make_clean_run("dbcl", guarantees={"epsilon": 4.0}, bytes_up=1011.0, bytes_down=900.0),
        "gone": make_clean_run("dbcl", guarantees={}, bytes_up=1000.0, bytes_down=1000.0),
    }
    compared = {name: compare(base, replace(base, clean_runs=(h,))) for name, h in found.items()}
    assert compared["rounding"].findings == []
    assert [i.findings for i in compared["weaker"].findings] == [
        ["another guarantee: epsilon 2 → 4", "more bytes up per client and round: 1,000 → 1,011"]
    ]
    assert "fewer bytes down per client and round: 1,000 → 900" in [
        f.words for i in compared["weaker"].items for f in i.changes if not f.finding
    ]
    assert [i.findings for i in compared["gone"].findings] == [["another guarantee: epsilon 2 → none"]]


def test_utility_has_its_own_effect() -> None:
    def less(by: float) -> Board:
        return change_clean_runs(
            BASE,
            lambda h: replace(h, utility={s: u - by for s, u in h.utility.items()}) if h.defense == "defense1" else h,
        )

    assert compare(BASE, less(0.04)).findings == []
    assert [i.findings for i in compare(BASE, less(0.06)).findings] == [["the model is less useful"]]


@pytest.mark.parametrize(("by", "counts", "found"), [(0.02, True, 1), (0.005, True, 0), (0.02, False, 0)])
def test_clients_that_train_alone_matter_where_a_score_begins_there(by: float, counts: bool, found: int) -> None:
    problem = make_problem(utility=counts)
    base = replace(make_board(), problems=(problem,))
    alone = {seed: value + by for seed, value in problem.local_only.items()}
    new = replace(base, problems=(replace(problem, local_only=alone),))
    assert sum("train alone" in words for f in compare(base, new).findings for words in f.findings) == found


def test_boards_that_measured_nothing_are_findings() -> None:
    empty = make_board([], [])
    failed = make_board([make_cell("dbcl", "dlg", 0.5, status="failed")], [])
    assert findings(compare(empty, empty)) == {
        "the boards as a whole": ["the base board has no cells", "the new board has no cells"]
    }
    assert findings(compare(failed, failed)) == {
        "the boards as a whole": [
            "the base board measured nothing: it has no score at all",
            "the new board measured nothing: it has no score at all",
        ]
    }
    assert verdict(compare(empty, empty)) == "Failed: 1 other finding."


def test_notes_of_boards_are_passed_on() -> None:
    found = compare(BASE, replace(BASE, notes=("1 record is damaged",)))
    assert found.findings == []
    assert notes(found) == ["the new board: 1 record is damaged: the boards as a whole"]


def test_seeds_that_base_lacks_are_named() -> None:
    fewer = wide_board(3, 6, 2)
    more = replace(fewer, seeds=(0, 1, 2, 3))
    assert notes(compare(fewer, more)) == [
        "only the new board has seeds 2, 3: they are not compared: the boards as a whole"
    ]
    assert notes(compare(fewer, fewer)) == []


def test_moved_scores_of_one_seed_are_findings_without_a_test() -> None:
    base = wide_board(3, 6, 1)
    found = compare(base, change_cells(base, lambda c: lowered(c, 0.2) if c.attack == "attack5" else c))
    assert verdict(found) == "Failed: 3 scores with one seed moved."
    words = {w for item in found.findings for w in item.findings}
    assert words == {"the score fell, which with one seed may be noise or a change"}
    assert caveats(found)[0].startswith("One seed: the noise is unknown")
    assert compare(base, base).findings == []


def test_the_rate_and_the_effects_are_obeyed() -> None:
    new = change_cells(BASE, lambda c: lowered(c, 0.2) if c.attack == "attack5" else c)
    assert compare(BASE, new).findings
    coarse = Rules(effects={"privacy": 0.3, "integrity": 0.3, "utility": 0.3, "mean": 0.3})
    assert compare(BASE, new, coarse).findings == []
    noisy = wide_board(stream=1)
    moved = change_cells(noisy, lambda c: lowered(c, 0.25) if c.place == BASE.cells[30].place else c)
    p = next(i.verdict.p for i in compare(BASE, moved).items if i.verdict and i.verdict.contrast.difference < -0.2)
    assert p is not None
    for rate, finding in ((2.1 * p, True), (1.9 * p, False)):
        found = compare(BASE, moved, Rules(false_alarm=min(rate, 0.999)))
        assert any(i.group == "cell" for i in found.findings) is finding


def test_counts_add_up() -> None:
    new = change_cells(wide_board(stream=1), lambda c: lowered(c, 0.3) if c.attack == "attack5" else c)
    found = compare(BASE, new)
    assert sum(found.counts.values()) == len(BASE.cells) + len(BASE.clean_runs)
    assert f"{found.counts['loss']} lower" in tally(found)
    assert found.counts["loss"] > 0
