"""The page on attackers with memory says what its board says."""

from __future__ import annotations

from helpers.paths import ROOT
from helpers.scripts import load_script

PAGE = (ROOT / "reports/measured/memory.md").read_text(encoding="utf-8")


def test_the_tables_are_those_of_the_board() -> None:
    script = load_script("benchmarks/memory_grid.py")
    grid = script.read(str(ROOT / "reports/memory/board.json"))
    assert script.table(grid) in PAGE
    assert script.momentum(grid) in PAGE
