"""How wide commands print: what COLUMNS says, else what a terminal has, else a number of their own."""

from __future__ import annotations

import io
import sys

import pytest
from rich.table import Table

from fedarena.cli.output.terminal import Terminal, stdout_width


@pytest.mark.parametrize(
    ("columns", "is_terminal", "width"),
    [
        ("40", False, 40),
        ("40", True, 40),
        (None, False, 110),
        ("", False, 110),
        ("0", False, 110),
        ("x", False, 110),
    ],
)
def test_the_width_of_what_is_printed(
    columns: str | None, is_terminal: bool, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal, raising=False)
    assert Terminal(width=stdout_width(110)).width == width


def test_a_terminal_is_asked_for_its_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert stdout_width(110) is None


@pytest.mark.parametrize("width", range(16, 40))
def test_no_line_ends_between_a_number_and_its_percent_sign(width: int) -> None:
    console = Terminal(width=width, file=io.StringIO())
    text = "Adapted, the attack recovers 100 % (48 to 100 %) of the images, as published 0 %."
    console.print(text, highlight=False)
    table = Table("images")
    table.add_row(text)
    console.print(table)
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert not [line for line in lines if line.strip(" │").startswith("%")]
    assert " ".join(console.file.getvalue().split("┏")[0].split()) == text  # type: ignore[attr-defined]
