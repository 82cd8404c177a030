"""Whatever reads records refuses a folder without any, one that is not there, and a file, in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

import fedarena as fa
from fedarena.cli import main

READERS = (["leaderboard"], ["report"], ["compare"], ["export", "--to=csv"])


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    Path("file").write_text("")


@pytest.mark.parametrize("name", ["empty", "nowhere", "file"])
@pytest.mark.parametrize("words", READERS, ids=lambda words: words[0])
def test_a_command_refuses_it_with_exit_code_two(
    words: list[str], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, *[name] * (2 if words == ["compare"] else 1)]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert name in told
    assert sorted(path.name for path in Path().iterdir()) == ["empty", "file"]


@pytest.mark.parametrize("name", ["empty", "nowhere", "file", 3, ""])
def test_a_function_raises_the_line(name: str) -> None:
    for read in (fa.load_board, fa.read_records, fa.read_transcript, lambda where: fa.compare(where, where)):
        with pytest.raises(fa.UserError, match=name if isinstance(name, str) and name else "allowed: a path"):
            read(name)
