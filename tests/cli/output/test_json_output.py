"""JSON on stdout gives no orders to a terminal."""

from __future__ import annotations

import json

import pytest

from fedarena.cli.output.json_output import print_json


def test_control_characters_in_json_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    content = {"a\x9b2J": "\x1b[2J\x7f\x91 é"}
    print_json(content)
    printed = capsys.readouterr().out
    assert json.loads(printed) == content
    assert not [c for c in printed if c != "\n" and not c.isprintable()]
    assert "é" in printed
