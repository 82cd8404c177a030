"""Shells complete commands, options and names: as their code does, by asking `bench` at a press of the tab key."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fedarena.cli import main

CODE = "import sys; from fedarena.cli import main; sys.exit(main(sys.argv[1:]))"


def completions(line: str, tmp_path: Path) -> set[str]:
    """What `bench` answers a shell whose line reads so, with the cursor at its end."""
    answer = tmp_path / "answer"
    asked = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n", "_ARGCOMPLETE_STDOUT_FILENAME": str(answer)}
    asked |= {"_ARGCOMPLETE_SUPPRESS_SPACE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line.encode()))}
    (tmp_path / "my_rule.py").touch()
    env = {**os.environ, **asked}
    subprocess.run([sys.executable, "-c", CODE], env=env, check=True, capture_output=True, cwd=tmp_path)
    return set(answer.read_text().split("\n"))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("bench le", {"leaderboard"}),
        ("bench run --defense two-", {"two-stage", "two-stage-hardened"}),
        ("bench run --defense dp-sgd+med", {"dp-sgd+median"}),
        ("bench run --attack dl", {"dlg"}),
        ("bench run --data", {"--data-dir", "--dataset"}),
        ("bench show kmn", {"kmnist"}),
        ("bench data fetch k", {"kmnist"}),
        ("bench data fetch di", {""}),
        ("bench data verify dig", {"digits", "digit-domains"}),
        ("bench list agg", {"aggregator"}),
        ("bench reproduce dbcl/fig", {"dbcl/figure3"}),
        ("bench run --party server,cl", {"server,client"}),
        ("bench run --form ", {"paper", "adaptive"}),
        ("bench suite run hetero", {"heterogeneous"}),
        ("bench leaderboard --threats server,om", {"server,omniscient"}),
        ("bench check kru", {"krum"}),
        ("bench check my_", {"my_rule.py"}),
        ("bench check krum --laws devices-agr", {"devices-agree"}),
        ("bench check dbcl --set ra", {"ratio="}),
        ("bench run --defense dbcl+krum --attack dlg --set dbcl.r", {"dbcl.ratio="}),
        ("bench run --attack dlg --set training.local_e", {"training.local_epochs="}),
        ("bench completion f", {"fish"}),
    ],
)
def test_a_line_is_completed(line: str, expected: set[str], tmp_path: Path) -> None:
    assert {text.strip() for text in completions(line, tmp_path)} == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_code_is_one_that_the_shell_can_read(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    code = capsys.readouterr().out
    assert "bench" in code
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed: its code is not tried")
    option = "--no-execute" if shell == "fish" else "-n"
    assert subprocess.run([shell, option], input=code, text=True, capture_output=True).returncode == 0


def test_another_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "tcsh"]) == 2
    error = capsys.readouterr().err
    assert "tcsh" in error
    assert error.count("\n") == 1
