"""What a command writes to stdout and stderr, whoever reads them, and whatever methods print."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("undrawn", "few_trees")

LOUD = """
import os
import fedarena as fa

@fa.rule("loud")
def loud(x, f):
    print("hello from the rule")
    os.system("echo hello from below")
    return x.mean(0)
"""


COMMANDS = """
import sys
from fedarena.cli import main
words = "run --attack=sign-flip --json --rounds=2 --clients=4 --corrupted=1 --model=mlp".split()
for jobs in ("1", "2"):
    assert main([*words, *sys.argv[1:], f"--jobs={jobs}"]) == 0
    for stream in (sys.stdout, sys.stderr):
        print("\\f", file=stream, flush=True)
"""
"""The same command without workers and with two, one after the other."""


def both(folder: Path, words: str, closed: str = "") -> list[tuple[str, str]]:
    """What each wrote to stdout and to stderr."""
    (folder / "commands.py").write_text(COMMANDS)
    line = f"{sys.executable} commands.py {words} {closed}"
    done = subprocess.run(["bash", "-c", line], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    out, err = done.stdout.split("\f"), done.stderr.split("\f")
    assert len(out) == 3
    return [(out[i], err[i] if len(err) == 3 else "") for i in range(2)]


def test_what_methods_print_is_not_on_stdout(tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text(LOUD)
    for out, err in both(tmp_path, "--defense=loud --plugin=loud.py --quiet"):
        assert json.loads(out)["records"]
        assert "hello from the rule" in err
        assert "hello from below" in err


@pytest.mark.parametrize("command", ["list", "show dbcl", "list attack --json"])
def test_a_reader_that_stops_reading_ends_the_command_quietly(tmp_path: Path, command: str) -> None:
    line = f"{sys.executable} -m fedarena {command} | head -1"
    done = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n") == 1


@pytest.mark.parametrize("command", ["list >&-", "list <&- >&-"])
def test_a_closed_stdout_is_no_error(tmp_path: Path, command: str) -> None:
    done = in_a_shell(tmp_path, command)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("closed", ["2>&-", "<&- 2>&-"])
def test_a_closed_stderr_is_no_error(tmp_path: Path, closed: str) -> None:
    for out, _ in both(tmp_path, "--defense=median", closed):
        assert json.loads(out)["records"]


PYTHON = """
import fedarena as fa
fa.run("median", "sign-flip", rounds=2, clients=4, corrupted=1, model="mlp", jobs=2, out="runs")
"""


@pytest.mark.parametrize("closed", [">&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_error_in_python(tmp_path: Path, closed: str) -> None:
    line = f"{sys.executable} -c '{PYTHON}' {closed}"
    assert subprocess.run(["bash", "-c", line], cwd=tmp_path).returncode == 0
    assert len([*(tmp_path / "runs/records").iterdir()]) == 4


def in_a_shell(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    """A command whose streams the shell redirects."""
    command = f"{sys.executable} -m fedarena {line}"
    return subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True)
