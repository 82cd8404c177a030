"""The page says what the board says, whatever is on it."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

import pytest
from helpers.board import make_board, make_cell, make_clean_run, make_problem
from helpers.report import COMMANDS, rich_board

from fedarena.board.board import Board, BoardCell
from fedarena.board.ranking import rank_defenses
from fedarena.board.report.write import write_report


def page_of(board: Board, tmp_path: Path) -> str:
    """The front page, and after it the pages of cells."""
    done = write_report(board, tmp_path / "none", tmp_path / "out", COMMANDS)
    others = [(tmp_path / "out" / name).read_text() for name in done.files if re.fullmatch(r"cells-.*\.md", name)]
    return "\n".join([done.readme.read_text(), *others])


@cache
def rich_page() -> str:
    """The page of `rich_board`, which is written once: its figures take most of the time."""
    with TemporaryDirectory() as folder:
        return page_of(rich_board(), Path(folder))


def part(page: str, heading: str) -> str:
    """What stands below a heading of the second level."""
    return page.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def rows(text: str) -> list[list[str]]:
    """The body of all tables, cell by cell."""
    tables = re.findall(r"(?:^\|.*\|$\n?)+", text, re.MULTILINE)
    bodies = [line for table in tables for line in table.strip().splitlines()[2:]]
    return [[c.strip().replace("\\", "") for c in re.split(r"(?<!\\)\|", line)[1:-1]] for line in bodies]


def headings(page: str) -> list[str]:
    return re.findall(r"^## (.*)$", page, re.MULTILINE)


def folded(page: str, attack: str) -> str:
    """What opens below an attack's name."""
    return cells_of(page).split(f"<summary>{attack}: ")[1].split("</details>")[0]


def cells_of(page: str) -> str:
    """The pages of cells."""
    return page.split("\n# Cells of ", 1)[1]


def labelled(c: BoardCell) -> str:
    """BAFFLE's runs are marked."""
    return f"{c.defense} †" if c.defense == "baffle" else c.defense


def test_every_cell_is_in_its_attack_s_table_with_the_board_s_numbers() -> None:
    board = rich_board()
    page = rich_page()
    found = {a: {tuple(r[1:4]): r for r in rows(folded(page, a))} for a in {c.attack for c in board.cells}}
    assert sum(len(table) for table in found.values()) == len(board.cells)
    for c in board.cells:
        row = found[c.attack][c.problem, labelled(c), c.threat]
        assert row[4].split(" ")[0] == (f"{fmean(c.scores.values()):.2f}" if c.scores else "–")
        assert row[5] == str(len(c.scores))
        for values in c.metrics.values():
            assert f" {fmean(values.values()):.2f}" in row[6]
        assert row[7].startswith(c.status)
        assert c.reason in row[7]
        assert ("does not count" in row[7]) != c.counts


def test_the_order_of_cells_does_not_change_the_page(tmp_path: Path) -> None:
    board = rich_board()
    turned = page_of(replace(board, cells=tuple(reversed(board.cells))), tmp_path)
    for attack in ("dlg", "sign-flip"):
        assert folded(turned, attack) == folded(rich_page(), attack)
    threats = [(r[2], r[3]) for r in rows(folded(rich_page(), "dlg"))]
    assert threats[:3] == [("fedavg", "server, paper"), ("fedavg", "server, adaptive"), ("fedavg", "client, adaptive")]


def test_each_row_has_its_command() -> None:
    board = rich_board()
    page = rich_page()
    for c in board.cells:
        below = folded(page, c.attack)
        (number,) = [r[0] for r in rows(below) if r[1:4] == [c.problem, labelled(c), c.threat]]
        line = next(line for line in below.splitlines() if line.startswith(f"{c.command} #"))
        assert number in line.split("#")[1].replace(" ", "").split(",")


def test_the_heading_names_problems_seeds_versions_and_subsets() -> None:
    page = rich_page().split("## Which defense")[0]
    assert "**digits**: digits, mlp, 10 clients" in page
    assert "FedAvg's accuracy 91 ± 2 %, a constant prediction has 10 %" in page
    assert "FedAvg has no result" in page
    assert "accuracy on it does not count as utility" in page
    assert page.count("does not count as utility") == 1
    assert "a subset of the data: 50 of 100 rows" in page
    assert "3 seeds (0, 1, 2)" in page
    assert "fedarena 0.1.0, commit 0123456789ab" in page
    assert "2026-01-31" in page


def test_clean_runs_have_accuracy_cost_and_guarantees() -> None:
    found = {(r[0], r[1]): r for r in rows(part(rich_page(), "Clean runs"))}
    reached = ["86 ± 2 %", "0.95 ± 0.00", "400", "4,000", "1.00 ×", "–", "secure aggregation is simulated"]
    assert found["digits", "baffle"] == ["digits", "baffle", *reached]
    assert found["digits", "dp-sgd+krum"][6:8] == ["3.50 ×", "epsilon replace one 2, delta 1e-05"]
    assert found["years", "fedavg"][2] == "0.50 ± 0.00"


def test_failures_and_attacks_that_could_not_start_have_their_reasons() -> None:
    page = rich_page()
    broken = rows(part(page, "What is missing or failed"))
    assert [r[1] for r in broken] == ["dp-sgd+krum", "baffle", "baffle"]
    assert broken[0][2:] == ["dlg: client, adaptive", "failed", "the reason why dlg is failed"]
    assert broken[1][3] == "mixed: ok 0, 1; failed 2"
    assert broken[2][3:] == ["missing", "–"]
    assert rows(part(page, "Attacks that could not start")) == [
        ["the reason why dlg is n/a", "2", "baffle: dlg on digits (server, paper; server, adaptive)"]
    ]


def test_limits_name_seeds_subsets_and_simulations() -> None:
    shown = part(rich_page(), "Limits of this report")
    for words in ("3 seeds", "1 of 15 cells", "50 of 100 rows", "baffle: secure aggregation is simulated", "one seed"):
        assert words in shown


def test_the_common_threats_name_the_first_of_their_own_ranking(tmp_path: Path) -> None:
    shown = part(page_of(make_board(), tmp_path), "Which defense to take")
    assert "<summary>Malicious clients, curious server: two-stage</summary>" in shown
    assert "`--threats server,own,omniscient`" in shown
    assert "curious client, the others honest" in shown.split("No attack on this board is that of:")[1]
    assert rank_defenses(make_board())[0].defense == "two-stage"


def test_common_threats_say_where_no_defense_scores_above_fedavg(tmp_path: Path) -> None:
    cells = [make_cell(d, "dlg", score) for d, score in (("fedavg", 0.9), ("dbcl", 0.5), ("two-stage", 0.2))]
    shown = part(page_of(make_board(cells), tmp_path), "Which defense to take")
    assert "<summary>Curious server, honest clients: no defense scores above none</summary>" in shown
    assert "no defense here scores above plain fedavg, which is none; dbcl comes next" in shown


def test_every_part_says_that_there_are_no_records(tmp_path: Path) -> None:
    page = page_of(make_board([], [], problems=(), seeds=(), provenance={}), tmp_path)
    assert headings(page) == headings(rich_page())
    assert "![" not in page
    for words in (
        *("No problem: there are no records", "nothing was measured", "No records, so there is nothing to rank"),
        *("No run without an attack", "No cells: nothing was attacked", "There are no results at all"),
        *("No attack was n/a", "No seed: no interval", "No methods."),
    ):
        assert words in page


def test_one_seed_has_no_interval(tmp_path: Path) -> None:
    cells = [make_cell("fedavg", "dlg", 0.2, seeds=(4,)), make_cell("dbcl", "dlg", 0.5, seeds=(4,))]
    honest = [make_clean_run("fedavg", seeds=(4,)), make_clean_run("dbcl", seeds=(4,))]
    page = page_of(
        make_board(
            cells, honest, seeds=(4,), problems=(make_problem(reference_accuracy={4: 0.9}, local_only={4: 0.5}),)
        ),
        tmp_path,
    )
    assert "One seed: no interval" in part(page, "Limits of this report")
    assert "±" not in page.split("## How the scores are made")[0].replace("± is", "")
    assert rows(cells_of(page))[0][3] == "0.20"


@pytest.mark.parametrize("status", ["failed", "missing"])
def test_a_page_of_failures_ranks_no_defense(status: str, tmp_path: Path) -> None:
    cells = [
        make_cell(d, a, status=status, axis=axis)
        for d in ("fedavg", "dbcl")
        for a, axis in (("dlg", "privacy"), ("sign-flip", "integrity"))
    ]
    honest = [
        make_clean_run(
            d, status=status, reason="why", accuracy={}, utility={}, curve=(), keys=(), relative_seconds=None
        )
        for d in ("fedavg", "dbcl")
    ]
    page = page_of(make_board(cells, honest, problems=(make_problem(reference_accuracy={}),)), tmp_path)
    assert len(rows(part(page, "What is missing or failed"))) == 6
    assert "none can be recommended" in page
    assert f"fedavg 2 {status}; dbcl 2 {status}" in page
    assert "FedAvg has no result" in page
    assert {r[2] for r in rows(part(page, "Clean runs"))} == {f"{status}: why"}
    assert "No poisoned run has a curve" in page
    assert "No defense has both a cost" in page


def test_a_name_or_a_reason_cannot_break_the_page(tmp_path: Path) -> None:
    hostile = "a|b </summary><script>x</script> [c](d) `e`\nf ]( g *h* $x^{"
    cells = [make_cell(hostile, hostile, 0.5), make_cell("fedavg", hostile, status="failed", reason=hostile)]
    board = make_board(cells, [make_clean_run("fedavg"), make_clean_run(hostile, warnings=(hostile,))])
    board = replace(
        board, title=hostile, notes=(hostile,), problems=(make_problem(description=hostile, subset=hostile),)
    )
    page = page_of(board, tmp_path)
    outside_code = re.sub(r"^```+sh$.*?^```+$", "", page, flags=re.MULTILINE | re.DOTALL)
    assert "<script>" not in outside_code.replace("\\<script\\>", "")
    assert page.count("<details>") == page.count("</details>") == page.count("<summary>")
    assert {len(r) for r in rows(cells_of(page))} == {7}


def test_methods_have_their_sources_and_departures() -> None:
    shown = part(rich_page(), "Methods and sources")
    for name in ("fedavg", "dp-sgd", "krum", "baffle", "dlg", "joint-membership", "sign-flip", "bank", "digits"):
        assert shown.count(f"**{name}**, version") == 1
    assert "Zhu, Liu, Han (2019): Deep Leakage from Gradients (NeurIPS), <https://arxiv.org/abs/1906.08935>" in shown
    assert "<summary>Where dlg departs from its source</summary>\n\n- Any observation is matched" in shown
    assert "<summary>What to know of bank</summary>" in shown


def test_a_method_that_is_not_installed_is_unknown(tmp_path: Path) -> None:
    page = page_of(make_board([make_cell("of-somebody", "dlg", 0.5)], [make_clean_run("of-somebody")]), tmp_path)
    assert "**of-somebody**: not known where this report was made." in page
