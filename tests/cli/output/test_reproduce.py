"""Tables of `bench reproduce` as they are printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedarena.cli import main
from fedarena.cli.output.reproduce import show
from fedarena.cli.output.reproduce_markdown import page


def test_in_a_pipe_the_widest_rows_are_whole(capsys: pytest.CaptureFixture[str]) -> None:
    row = {f"quantity_number_{i}": f"value-of-{i:02d}-that-is-not-short" for i in range(25)}
    show({"table": "x/y", "setting": "as wide as it gets", "rows": [row]}, (), Path("x.json"))
    printed = capsys.readouterr().out
    assert "…" not in printed
    (header,) = (line for line in printed.splitlines() if "quantity" in line)
    (values,) = (line for line in printed.splitlines() if "value-of" in line)
    assert all(name.replace("_", " ") in header for name in row)
    assert all(value in values for value in row.values())


RESULT = {
    "table": "x/y",
    "setting": "what was set",
    "rows": [{"seed": s, "network": "a|b", "accuracy": a} for s, a in ((3, 0.5), (4, 0.75))],
    "parts": [{"fedarena": "1.0", "commit": c, "cpu_seconds": 90.0, "device": "cpu"} for c in ("abc", "def")],
    "environment": {"libraries": {"torch": "2.13.0"}, "machine": "x86_64"},
}


def test_a_page_has_the_rows_the_notes_and_the_command_behind_them() -> None:
    text = page(RESULT, ("accuracy",), None, [3, 4], "some, part")
    assert "```sh\nbench reproduce x/y --only 'some, part' --seeds 3,4\n```" in text
    assert "| a\\|b | 2 | 0.625 \\[0.5, 0.75\\] |" in text
    assert "2 parts, 180 s of CPU time; FedArena 1.0 (abc), 1.0 (def), torch 2.13.0" in text
    noted = page(RESULT, (), lambda rows: ([{"best": max(r["accuracy"] for r in rows)}], ["of *all*"]), [0], None)
    assert "```sh\nbench reproduce x/y\n```" in noted
    assert "| best |\n|--------|\n| 0.75 |\n\n- of \\*all\\*\n" in noted


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["pbpfl/table3", "--markdown", "."], "option 'markdown' is ., which is a folder: name a file"),
        (["pbpfl/table3", "--markdown", "file/page.md"], "option 'markdown' is file, which cannot be written"),
        (["--all", "--markdown", "page.md"], "option 'markdown' is of one table, but --all is given"),
    ],
)
def test_where_no_page_can_be_written_is_said_before_anything_is_measured(
    words: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    assert main(["reproduce", *words]) == 2
    assert told in capsys.readouterr().err
