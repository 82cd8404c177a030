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


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_what_methods_print_is_not_on_stdout(tmp_path: Path, jobs: str) -> None:
    (tmp_path / "loud.py").write_text(LOUD)
    few = ("--rounds=2", "--clients=4", "--corrupted=1", "--model=mlp", "--quiet", f"--jobs={jobs}")
    command = ("run", "--defense=loud", "--attack=sign-flip", "--plugin=loud.py", "--json", *few)
    done = subprocess.run([sys.executable, "-m", "fedarena", *command], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["records"]
    assert "hello from the rule" in done.stderr
    assert "hello from below" in done.stderr


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
@pytest.mark.parametrize("jobs", ["", "--jobs=1"])
def test_a_closed_stderr_is_no_error(tmp_path: Path, jobs: str, closed: str) -> None:
    few = f"--rounds=2 --clients=4 --corrupted=1 --model=mlp {jobs}"
    done = in_a_shell(tmp_path, f"run --defense=median --attack=sign-flip {few} --json {closed}")
    assert done.returncode == 0
    assert json.loads(done.stdout)["records"]


@pytest.mark.parametrize("closed", [">&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_error_in_python(tmp_path: Path, closed: str) -> None:
    run = "fa.run('median', 'sign-flip', rounds=2, clients=4, corrupted=1, model='mlp', jobs=2, out='runs')"
    done = subprocess.run(["bash", "-c", f'{sys.executable} -c "import fedarena as fa; {run}" {closed}'], cwd=tmp_path)
    assert done.returncode == 0
    assert len([*(tmp_path / "runs/records").iterdir()]) == 4


def in_a_shell(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    """A command whose streams the shell redirects."""
    command = f"{sys.executable} -m fedarena {line}"
    return subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True)
