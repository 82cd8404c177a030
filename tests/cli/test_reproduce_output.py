"""Tables of `bench reproduce` as they are printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedarena.cli.reproduce_output import show


def test_in_a_pipe_the_widest_rows_are_whole(capsys: pytest.CaptureFixture[str]) -> None:
    row = {f"quantity_number_{i}": f"value-of-{i:02d}-that-is-not-short" for i in range(25)}
    show({"table": "x/y", "setting": "as wide as it gets", "rows": [row]}, (), Path("x.json"))
    printed = capsys.readouterr().out
    assert "…" not in printed
    (header,) = (line for line in printed.splitlines() if "quantity" in line)
    (values,) = (line for line in printed.splitlines() if "value-of" in line)
    assert all(name.replace("_", " ") in header for name in row)
    assert all(value in values for value in row.values())
