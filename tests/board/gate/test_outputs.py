"""Markdown for a pull request and JUnit XML, read back."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

from helpers.board import make_board, make_cell
from helpers.gate import change_cells, wide_board

from fedarena.board.board import Board, BoardCell
from fedarena.board.gate.compare import compare
from fedarena.board.gate.comparison import Rules
from fedarena.board.gate.junit import junit
from fedarena.board.gate.markdown import SHOWN, markdown

BASE = wide_board()


def inert(c: BoardCell) -> BoardCell:
    """An attack that has no effect any more."""
    return replace(c, scores=dict.fromkeys(c.scores, 1.0)) if c.attack == "attack7" else c


def test_markdown_begins_with_the_verdict_and_has_a_row_for_each_finding() -> None:
    found = compare(BASE, change_cells(BASE, inert))
    text = markdown(found)
    assert text.startswith("**Failed: 7 scores rose.**\n")
    rows = [line for line in text.splitlines() if line.startswith("| digits ·")]
    assert len(rows) == 6
    for line in rows:
        assert line.replace("\\|", "").count("|") == 9
        assert "weaker attack, or stronger defense" in line
        assert "| 1.000 | +0." in line
    assert "| attack attack7 · privacy, mean over 5 cells | weaker attack" in text
    assert "72 identical" in text
    assert "    bench run --defense fedavg --attack attack7 --seeds 0,1,2" in text
    assert "at most 0.05 of boards" in text


def test_markdown_of_what_passed_is_short() -> None:
    text = markdown(compare(BASE, BASE))
    assert text.startswith("**Passed: all 78 scores are identical.**")
    assert "| where |" not in text
    assert "<details>" not in text


def test_markdown_holds_what_an_exception_says() -> None:
    base = make_board([make_cell("dbcl", "dlg", 0.5)])
    bad = make_cell("dbcl", "dlg", 0.5, status="failed", reason="<b>a | b</b>\n@someone `x` *y*")
    text = markdown(compare(base, make_board([bad])))
    assert "@" not in text
    assert "<b>" not in text.replace("\\<b\\>", "")
    row = next(line for line in text.splitlines() if line.startswith("| digits · dbcl"))
    assert "a \\| b" in row


def test_markdown_keeps_a_stranger_s_command_within_its_block() -> None:
    command = "bench run\n\n<b>html</b> @someone\r\n# heading \x1b[2J"
    base = change_cells(wide_board(), lambda c: replace(c, command=command))
    worse = change_cells(base, lambda c: replace(c, scores=dict.fromkeys(c.scores, 0.0)))
    text = markdown(compare(base, replace(worse, suite="a`\n# b", title=""), Rules()))
    lines = [line for line in text.splitlines() if "someone" in line or "# b" in line]
    assert lines
    assert {line for line in lines if "someone" in line} == {
        "    bench run <b>html</b> @someone # heading \N{SYMBOL FOR ESCAPE}[2J"
    }
    assert not any(line.startswith("#") for line in lines)


def test_a_long_list_is_cut_and_says_so() -> None:
    many = [make_cell("dbcl", f"attack{i}", 0.5) for i in range(SHOWN + 7)]
    text = markdown(compare(make_board(many), make_board(many[:1])))
    assert text.count("missing: the new board does not have this cell") == SHOWN
    assert f"… and {SHOWN + 6 - SHOWN} more." in text
    text = markdown(compare(make_board(many[:1]), make_board(many)))
    assert f"New: {SHOWN + 6}" in text
    assert "… and 6 more." in text


def test_changes_that_are_no_findings_are_listed() -> None:
    text = markdown(compare(BASE, change_cells(BASE, lambda c: replace(c, versions={"defense": 2, "attack": 1}))))
    assert "versions of methods: defense 1 → 2: digits · fedavg · attack0" in text
    assert "and 71 more" in text


def parsed(base: Board, new: Board) -> ElementTree.Element:
    return ElementTree.fromstring(junit(compare(base, new)).encode())


def test_junit_has_a_case_for_each_cell_and_correct_counts() -> None:
    top = parsed(BASE, change_cells(BASE, inert))
    assert top.tag == "testsuites"
    assert [s.get("name") for s in top] == ["clean runs", "cells", "means over cells"]
    for suite in [top, *top]:
        cases = list(suite.iter("testcase"))
        assert suite.get("tests") == str(len(cases))
        assert suite.get("failures") == str(sum(c.find("failure") is not None for c in cases))
        assert suite.get("skipped") == str(sum(c.find("skipped") is not None for c in cases))
        assert suite.get("errors") == "0"
    cells = list(top[1])
    assert len(cells) == len({(c.get("classname"), c.get("name")) for c in cells}) == 72
    failed = [c for c in cells if c.find("failure") is not None]
    assert len(failed) == 6
    for case in failed:
        failure = case.find("failure")
        assert failure is not None
        assert "attack7" in str(case.get("name"))
        assert str(failure.get("message")).startswith("weaker attack, or stronger defense; base 0.")
        assert "--attack attack7" in str(failure.text)
    passed = cells[0].find("system-out")
    assert passed is not None
    assert str(passed.text).startswith("identical: base 0.")


def test_junit_skips_what_has_no_score_on_either_board() -> None:
    board = make_board([make_cell("dbcl", "dlg", 0.5, status="n/a"), make_cell("fedavg", "dlg", 0.0)])
    top = parsed(board, board)
    skipped = [c for c in top.iter("testcase") if c.find("skipped") is not None]
    assert [c.get("name") for c in skipped] == ["digits · dbcl · dlg · server, adaptive"]
    shown = skipped[0].find("skipped")
    assert shown is not None
    assert shown.get("message") == "n/a: the reason why dlg is n/a"


def test_junit_of_empty_boards_fails_and_holds_signs_that_xml_cannot() -> None:
    top = parsed(make_board([], []), make_board([], []))
    assert top.get("failures") == "1"
    base = make_board([make_cell("dbcl", "dlg", 0.5)])
    bad = make_board([make_cell("dbcl", "dlg", 0.5, status="failed", reason="\x1b[31mred\x9b0m\x7f & <b> \ud800")])
    failure = next(parsed(base, bad).iter("failure"))
    assert "\ufffd[31mred\ufffd0m\ufffd" in str(failure.get("message"))
    assert "& <b>" in str(failure.get("message"))


def test_losses_only_is_stated() -> None:
    assert "Only losses count" in markdown(compare(BASE, BASE, Rules(losses_only=True)))
