"""Attacks that do nothing any more, found by equal accuracies; and what the gate says of small changes."""

from __future__ import annotations

from dataclasses import replace

from helpers.gate import change_cells, change_clean_runs, wide_board

from fedarena.board.board import Board, BoardCell
from fedarena.board.gate.compare import compare
from fedarena.board.gate.comparison import Comparison, Rules
from fedarena.board.gate.inert import NO_ATTACK, harmless_now
from fedarena.board.gate.wording import caveats, localized, tally, verdict

BASE = wide_board()


def idle(board: Board, defenses: int, attack: str = "attack1", seeds: int = 3) -> Board:
    """With an attack that leaves the first defenses' accuracies exactly as they are."""
    honest = {h.defense: h.accuracy for h in board.clean_runs[:defenses]}

    def still(c: BoardCell) -> BoardCell:
        if c.attack != attack or c.defense not in honest:
            return c
        return replace(c, metrics={"accuracy": dict(list(honest[c.defense].items())[:seeds])})

    return change_cells(board, still)


def findings(c: Comparison) -> list[str]:
    """Where an attack is said to do nothing."""
    return [i.name for i in c.findings if NO_ATTACK in i.findings]


def test_an_attack_that_became_harmless_is_a_finding() -> None:
    found = compare(BASE, idle(BASE, 6))
    assert len(findings(found)) == len(found.findings) == 6
    assert all("· attack1 ·" in name for name in findings(found))
    assert found.counts["identical"] == 78  # no test of scores says so


def test_a_method_that_did_nothing_before_is_no_finding() -> None:
    assert compare(idle(BASE, 6), idle(BASE, 6)).findings == []
    assert compare(idle(BASE, 6), BASE).findings == []
    assert len(findings(compare(idle(BASE, 4), idle(BASE, 6)))) == 2


def test_accuracies_that_are_equal_by_chance_are_no_finding() -> None:
    assert findings(compare(BASE, idle(BASE, 1))) == []  # one defense
    assert findings(compare(BASE, idle(BASE, 3))) == []  # half of them
    assert len(findings(compare(BASE, idle(BASE, 4)))) == 4
    assert findings(compare(BASE, idle(BASE, 5, seeds=1))) != []
    one = wide_board(5, seeds=1)
    assert findings(compare(one, idle(one, 5))) == []  # five runs
    more = wide_board(6, seeds=1)
    assert len(findings(compare(more, idle(more, 6)))) == 6


def test_inference_has_no_accuracy_that_could_be_equal() -> None:
    """The same metric, but an attack that reads."""
    assert harmless_now(BASE, idle(BASE, 6, "attack7")) == set()


def test_fedavgs_own_accuracy_is_compared() -> None:
    """Its utility is 1 whatever it learns."""
    less = change_clean_runs(
        BASE,
        lambda h: replace(h, accuracy={s: a / 2 for s, a in h.accuracy.items()}) if h.defense == "fedavg" else h,
    )
    found = compare(BASE, less)
    words = "FedAvg's own accuracy fell, which utility is measured against"
    assert [(i.name, i.findings) for i in found.findings] == [("digits · fedavg · clean run", [words])]
    assert compare(less, BASE).findings[0].findings == [words.replace("fell", "rose")]


def nudged(board: Board, defense: str = "", attack: str = "") -> Board:
    """With scores of some cells that moved by less than matters."""

    def nudge(c: BoardCell) -> BoardCell:
        mine = defense in ("", c.defense) and attack in ("", c.attack)
        return replace(c, scores={s: v + 0.001 * (s + 1) for s, v in c.scores.items()}) if mine else c

    return change_cells(board, nudge)


def test_small_changes_are_localized() -> None:
    assert localized(compare(BASE, BASE)) == []
    assert localized(compare(BASE, nudged(BASE))) == []  # of all defenses and attacks
    for new, text in (
        (nudged(BASE, "defense2"), "12 of 78 scores changed, only of defense2"),
        (nudged(BASE, attack="attack3"), "6 of 78 scores changed, only of attack3"),
        (nudged(BASE, "defense2", "attack3"), "1 of 78 scores changed, only of defense2"),
    ):
        found = compare(BASE, new)
        assert found.findings == []
        assert localized(found)[0].startswith(text)
        assert localized(found)[0] in caveats(found)
    assert localized(compare(nudged(nudged(BASE, "defense2"), attack="attack3"), BASE)) == []
    everything = replace(BASE, cells=BASE.cells[:12], clean_runs=BASE.clean_runs[:1])
    assert localized(compare(everything, nudged(everything))) != []  # the clean run stays as it is


def test_exact_rules_find_every_change() -> None:
    new = nudged(BASE, "defense2")
    found = compare(BASE, new, Rules(exact=True))
    assert len(found.findings) == found.counts["changed"] == 12
    assert {w for i in found.findings for w in i.findings} == {"changed, within noise or by less than matters"}
    assert verdict(found) == "Failed: 12 scores changed within noise."
    assert "12 changed within noise or by less than matters" in tally(found)
    assert any(t.startswith("No score may change") for t in caveats(found))
    assert compare(BASE, BASE, Rules(exact=True)).findings == []
    # What is a loss is called a loss.
    lost = change_cells(new, lambda c: replace(c, scores=dict.fromkeys(c.scores, 0.0)) if c.attack == "attack5" else c)
    counts = compare(BASE, lost, Rules(exact=True)).counts
    assert (counts["loss"], counts["changed"], counts["noise"]) == (6, 11, 0)
