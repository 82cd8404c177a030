"""Semaphores of killed runs are removed, and no others."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fedarena.runs.executors import Local
from fedarena.runs.left_semaphores import FOLDER, OLD, remove_left_semaphores

KILLED = """
import os, signal
from joblib.externals.loky.backend.synchronize import Lock
lock = Lock()
os.killpg(0, signal.SIGKILL)
"""
"""A process that is killed together with the one that would remove its semaphore."""


def age(path: Path, seconds: float) -> None:
    """Make a file so many seconds old."""
    os.utime(path, (time.time() - seconds,) * 2)


@pytest.mark.skipif(not FOLDER.is_dir(), reason="named semaphores are no files here")
def test_what_a_killed_run_left_goes_when_another_begins() -> None:
    run = subprocess.Popen([sys.executable, "-c", KILLED], start_new_session=True)
    assert run.wait() == -9
    (left,) = FOLDER.glob(f"sem.loky-{run.pid}-*")
    Local(2)
    assert left.exists()  # it might belong to a run in another container
    age(left, OLD + 1)
    Local(2)
    assert not left.exists()


def test_semaphores_of_living_processes_and_other_files_stay(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    names = [f"sem.loky-{os.getpid()}-a", f"sem.other-{gone.pid}-a", "sem.loky-x-a", f"sem.loky-{gone.pid}-a"]
    for name in names:
        (tmp_path / name).touch()
        age(tmp_path / name, OLD + 1)
    remove_left_semaphores(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names[:-1])


def test_a_folder_that_is_missing_is_no_error(tmp_path: Path) -> None:
    remove_left_semaphores(tmp_path / "nowhere")
