"""The judge sees what must not happen, on commands that do it on purpose."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from fuzz import judge as judging
from fuzz.judge import TookTooLong, judge


def ends(argv: Sequence[str]) -> int:
    """A command that ends as it should."""
    print("bench: option 'x' is 3, allowed: 4", file=sys.stderr)
    return 2


def raises(argv: Sequence[str]) -> int:
    raise KeyError("x")


def says_two_lines(argv: Sequence[str]) -> int:
    print("bench: one\ntwo", file=sys.stderr)
    return 2


def clears_the_screen(argv: Sequence[str]) -> int:
    print("\x1b[2J")
    return 0


def prints_no_json(argv: Sequence[str]) -> int:
    print('{"a": NaN}')
    return 0


def writes_elsewhere(argv: Sequence[str]) -> int:
    try:
        Path("../elsewhere").write_text("x")
    except PermissionError:
        return ends(argv)
    return 0


def hangs(argv: Sequence[str]) -> int:
    time.sleep(5)
    return 0


def waits_for_a_pipe(argv: Sequence[str]) -> int:
    os.mkfifo("pipe")
    with suppress(TookTooLong):
        Path("pipe").read_bytes()
    return 0


def ends_otherwise(argv: Sequence[str]) -> int:
    return 130


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (ends, []),
        (raises, ["traceback: KeyError in "]),
        (says_two_lines, ["output: exit code 2, and stderr is not one line that begins with 'bench: '"]),
        (clears_the_screen, ["output: '\\x1b' on stdout", "output: with --json stdout is no JSON"]),
        (prints_no_json, ["output: with --json stdout is no JSON"]),
        (writes_elsewhere, ["outside: it wrote elsewhere: open "]),
        (hangs, ["hang: it was ended after 0.2 s, "]),
        (waits_for_a_pipe, ["hang: it was ended after 0.2 s, "]),
        (ends_otherwise, ["output: exit code 130"]),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_the_judge_sees_what_must_not_happen(
    command: Callable[..., int], told: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judging, "main", command)
    folder = tmp_path / "case"
    folder.mkdir()
    found = [f"{fault.sort}: {fault.told}" for fault in judge(["--json"], folder, seconds=0.2).faults]
    assert len(found) == len(told)
    assert all(one.startswith(start) for one, start in zip(found, told, strict=True)), found
    assert not (tmp_path / "elsewhere").exists()
