"""Text of strangers without characters that a terminal obeys."""

from __future__ import annotations

import io

import pytest
from rich.table import Table
from rich.text import Text

from fedarena.cli.output.terminal import Terminal
from fedarena.core.text.markdown import code, escape, folded
from fedarena.core.text.printable import one_line, printable

EVIL = "a\x1b[2Jb\x9b31mc\x7fd\x00e\x1b]0;title\x07"
ORDERS = {chr(c) for c in (*range(0x20), *range(0x7F, 0xA0))} - {"\n", "\t"}


def test_control_characters_become_pictures() -> None:
    assert printable("a\x1bb\nc\td\r\x07\x7f\x9b") == "a␛b\nc\td␍␇␡\N{REPLACEMENT CHARACTER}"
    assert one_line("a\nb\tc") == "a␊b␉c"
    assert printable("Grüße, 日本 ε") == "Grüße, 日本 ε"


@pytest.mark.parametrize("colours", [False, True])
def test_the_console_prints_no_orders_of_a_text(colours: bool) -> None:
    out = io.StringIO()
    console = Terminal(file=out, width=200, force_terminal=colours, color_system="standard" if colours else None)
    table = Table(EVIL)
    table.add_row(Text(EVIL))
    for shown in (EVIL, Text(EVIL, "bold"), table):
        console.print(shown, markup=False, highlight=False)
    assert "␛[2J" in out.getvalue()
    assert "\x1b[2J" not in out.getvalue()
    assert "\x1b]0" not in out.getvalue()
    assert ("\x1b[1m" in out.getvalue()) == colours
    assert not (ORDERS - ({"\x1b"} if colours else set())) & set(out.getvalue())


def test_markdown_holds_no_orders() -> None:
    for text in (escape(EVIL), folded(EVIL, ""), code([EVIL])):
        assert not ORDERS & set(text)
        assert "␛" in text
