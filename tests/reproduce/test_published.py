"""The papers' numbers: each measured by a part, told apart from others, counted against what is printed."""

from __future__ import annotations

import json
import re
from importlib import import_module
from typing import Any

import pytest
from helpers.paths import ROOT
from helpers.published import every_published_number

from fedarena.reproduce.dbcl import table1_rest as dbcl_table1_rest
from fedarena.reproduce.left_out import PAPERS, counted
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.page.layout import EXTERNAL, paper_of
from fedarena.reproduce.page.tallies import LEFT_OUT
from fedarena.reproduce.published import Published
from fedarena.reproduce.tables import TABLES, table_of
from fedarena.reproduce.two_stage import common as two_stage
from fedarena.reproduce.two_stage import table3 as two_stage_table3
from fedarena.reproduce.two_stage import table16 as two_stage_table16
from fedarena.reproduce.two_stage import tables10to14 as two_stage_tables10to14


def test_every_published_number_is_measured_by_a_part_and_told_apart() -> None:
    every = every_published_number()
    assert len(every) > 300
    assert {t.partition("/")[0] for t, _ in every} == {"dbcl", "two-stage", "baffle", "pbpfl", EXTERNAL}
    for table, p in every:
        assert set(p.pieces) <= set(table_of(table).pieces), (table, p)
        assert p.column in table_of(table).measured or not table_of(table).measured, (table, p)
    names = [(table, p.setting, p.column) for table, p in every]
    assert len(set(names)) == len(names)


def test_papers_numbers_are_printed_as_the_paper_prints_them() -> None:
    for table, p in every_published_number():
        if isinstance(p.paper, float):
            assert float(f"{p.paper:.{p.decimals}f}") == p.paper, (table, p)
    with pytest.raises(ValueError, match="3 digits shown"):
        Published("p", paper=322 / 96, column="ratio", decimals=3)
    assert Published("p", paper=0.80, column="accuracy").shown == "0.80"
    assert (
        Published("p", paper=0.8, column="accuracy", decimals=4, source="authors' logs").shown
        == "0.8000 (authors' logs)"
    )
    assert Published("p", paper=3.354, column="ratio", decimals=3, derived="322/96").shown == "3.354 (derived: 322/96)"


def test_the_least_of_several_pieces_is_selected_by_what_their_names_share() -> None:
    one = Published("a, b, worst one", paper=0.5, column="accuracy", row=(("x", 1),), least_of=("a, b, worst two",))
    assert one.pieces == ("a, b, worst one", "a, b, worst two")
    assert (one.selected, one.setting) == ("a, b", "a, b, x 1")
    assert Published("a, b", paper=0.5, column="accuracy").selected == "a, b"


def leaves(value: Any) -> int:
    """Numbers in nested containers and in fields of dataclasses that are called `paper`."""
    if isinstance(value, dict):
        return sum(map(leaves, value.values()))
    if isinstance(value, tuple | list):
        return sum(map(leaves, value))
    return leaves(value.paper) if hasattr(value, "paper") else 1


OF_WORDS = {"dbcl/figure3", "two-stage/figure1", "two-stage/figure2"}
"""Tables of what the paper says in words, or of its authors' logs."""
RATIOS = {"pbpfl/table3"}
"""Tables of what is derived."""
PART_OF_ANOTHER = {"dbcl/table1"}
"""Tables whose numbers another one holds, too."""


@pytest.mark.parametrize("paper", PAPERS)
def test_what_the_tables_hold_is_what_is_said_to_be_on_the_page(paper: str) -> None:
    for one in PAPERS[paper]:
        assert one.numbers is None or 0 <= one.left <= one.numbers
        assert not one.left or (one.what and one.why), one
        assert one.left or one.numbers is None or one.tables, one
        holding = [t for t in one.tables if t not in OF_WORDS | RATIOS | PART_OF_ANOTHER]
        if one.numbers is not None:
            assert one.here == sum(leaves(vars(import_module(TABLES[t]))["PAPER"]) for t in holding), one.where


def test_every_published_number_is_listed_among_what_the_papers_print() -> None:
    named = {table for entries in PAPERS.values() for one in entries for table in one.tables}
    assert named == {table for table, _ in every_published_number() if paper_of(table) != EXTERNAL}


def test_the_results_page_counts_what_is_on_the_page() -> None:
    printed, here = counted(PAPERS)
    text = " ".join((ROOT / "docs/results.md").read_text().split())
    assert f"{here} of the {printed} results that the four papers print" in text
    assert f"The other {printed - here}" in text
    assert LEFT_OUT in text
    page = (ROOT / "reports/reproduction/README.md").read_text()
    (row,) = re.findall(r"^\| all \|(.*)\|$", page, re.MULTILINE)
    cells = [cell.strip().partition(" ")[0] for cell in row.split("|")]
    compared, held, better, differs, still, none, apart, away = (int(cell or 0) for cell in cells[:8])
    assert compared == held + better + differs + still + none
    lines = compared + apart + away
    counts = f"in {lines:,} lines. Of them {compared} are measured and can be compared. Of these {held} come back"
    assert counts in text
    rest = f"{better} are better, {differs} differ, {still} are open and {none} have no result."
    assert f"{rest} Another {apart} are measured and not comparable, and {away} are not measured." in text


def test_experiments_of_the_tables_can_be_set_up() -> None:
    """Those that take too long to measure here: the options, partitions and models that they name exist."""
    tables = two_stage_table3, two_stage_tables10to14, two_stage_table16
    for experiment in (experiment for table in tables for experiment in table.EXPERIMENTS):
        assert two_stage.group(experiment, Machine(), 0).problem.partition == experiment.partition
    assert len(dbcl_table1_rest.ENTRIES) == len(dbcl_table1_rest.BY_NAME) == 27
    assert {entry.row.network.model for entry in dbcl_table1_rest.ENTRIES} == {"mlp", "cnn-mnist"}
    assert [(p.piece, p.paper) for p in dbcl_table1_rest.TABLE.published if "c = 20%" in p.piece][:3] == [
        ("MLP, c = 20%", 84),
        ("MLP-Sketch, balanced hash (authors' code), c = 20%", 308),
        ("MLP-Sketch, CountSketch (paper's text), c = 20%", 308),
    ]


def test_what_a_table_calls_the_paper_s_is_what_is_published() -> None:
    """A row as a module makes it, whose own column is the number that the page shows."""
    table = table_of("baffle/table4")
    (row,) = table.rows("LeNet", Machine(), 0, lambda share, text: None)
    own = {p.column: p.paper for p in table.published if p.piece == "LeNet"}
    assert own == {"backprop": row["paper_backprop"], "layers": row["paper_layers"], "ratio_%": row["paper_ratio_%"]}
    assert all(re.fullmatch(r"[\d.~]+", str(row[column])) for column in own)
    assert json.dumps(row)
