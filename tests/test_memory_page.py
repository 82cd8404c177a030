"""The page on attackers with memory says what its board says."""

from __future__ import annotations

import sys

from helpers.paths import ROOT

PAGE = (ROOT / "reports/measured/memory.md").read_text(encoding="utf-8")


def test_the_tables_are_those_of_the_board() -> None:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        from memory_grid import momentum, read, table
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))
    grid = read(str(ROOT / "reports/memory/board.json"))
    assert table(grid) in PAGE
    assert momentum(grid) in PAGE
