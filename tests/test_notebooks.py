"""The notebooks of examples/ run from top to bottom, and show what they say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from helpers.paths import ROOT

NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
LONG = ("rules_against_poisoning", "your_defense_on_a_board")
"""About a minute each."""
MARKS = [pytest.param(path, id=path.stem, marks=pytest.mark.slow if path.stem in LONG else ()) for path in NOTEBOOKS]


def read(path: Path) -> Any:
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed: pip install '.[test]'")
    return nbformat.read(path, as_version=4)


@pytest.mark.parametrize("path", MARKS)
def test_a_notebook_runs(path: Path, tmp_path: Path) -> None:
    notebook = read(path)
    client = pytest.importorskip("nbclient", reason="nbclient is not installed: pip install '.[test]'")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed: pip install '.[test]'")
    before = sum(len(cell.get("outputs", [])) for cell in notebook.cells)
    client.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert sum(len(cell.get("outputs", [])) for cell in notebook.cells) == before


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_with_its_outputs_and_is_small(path: Path) -> None:
    notebook = read(path)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert len(outputs) >= 2
    assert all(output.output_type != "error" for output in outputs)
    assert path.stat().st_size < 100_000


def test_there_are_three_notebooks() -> None:
    assert len(NOTEBOOKS) == 3
