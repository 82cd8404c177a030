"""What a command writes to stdout and stderr, whoever reads them, and whatever methods print."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.paths import ROOT

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


BRIEFLY = """
from functools import partial
from helpers.brief import call_briefly
from fedarena.problem.alone import parties
from fedarena.runs import executors
parties.STEPS = parties.MOST_STEPS = 20
executors._call = partial(call_briefly, 20, executors._call)
"""
"""Clients that train alone take a tenth of the steps, in a process and in its workers."""

COMMANDS = f"""
import sys
from fedarena.cli import main
{BRIEFLY}
words = "run --attack=sign-flip --json --rounds=2 --clients=4 --corrupted=1 --model=mlp".split()
for jobs in ("1", "2"):
    assert main([*words, *sys.argv[1:], "--jobs=" + jobs]) == 0
    for stream in (sys.stdout, sys.stderr):
        print("\\f", file=stream, flush=True)
"""
"""The same command without workers and with two, one after the other."""


def both(folder: Path, words: str, closed: str = "") -> list[tuple[str, str]]:
    """What each wrote to stdout and to stderr."""
    (folder / "commands.py").write_text(COMMANDS)
    line = f"{sys.executable} commands.py {words} {closed}"
    done = in_bash(folder, line)
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
    done = in_bash(tmp_path, line)
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


PYTHON = f"""
import fedarena as fa
{BRIEFLY}
fa.run("median", "sign-flip", rounds=2, clients=4, corrupted=1, model="mlp", jobs=2, out="runs")
"""


@pytest.mark.parametrize("closed", [">&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_error_in_python(tmp_path: Path, closed: str) -> None:
    assert in_bash(tmp_path, f"{sys.executable} -c '{PYTHON}' {closed}").returncode == 0
    assert len([*(tmp_path / "runs/records").iterdir()]) == 4


def in_a_shell(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    """A command whose streams the shell redirects."""
    return in_bash(folder, f"{sys.executable} -m fedarena {line}")


def in_bash(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    """What bash runs, which finds the tests' helpers."""
    search = os.pathsep.join([str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    env = {**os.environ, "PYTHONPATH": search}
    return subprocess.run(["bash", "-c", line], cwd=folder, env=env, capture_output=True, text=True)
