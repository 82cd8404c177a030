"""Shared fixtures: a subprocess that runs the real command, and the plug-in of tests/plugin, installed."""

from __future__ import annotations

import os

# One thread, as in every worker of the harness: on a busy machine a second OpenMP thread costs far more than
# it gives. Set before torch is imported, and inherited by the commands that tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.fresh_python import run_python
from helpers.paths import ROOT

Bench = Callable[..., "subprocess.CompletedProcess[str]"]
"""bench(*args, path=None): run the command in a folder of its own, with `path` in front of PYTHONPATH."""


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """The command `bench` in a subprocess."""

    def call(*args: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
        code = "import sys; from fedarena.cli import main; sys.exit(main(sys.argv[1:]))"
        return run_python(code, *args, cwd=tmp_path, path=path)

    return call


def install_plugin(source: Path, folder: Path) -> Path:
    """Build a distribution from a copy of `source` and install it below `folder`; returns what to put on the path."""
    copy, site = folder / "source", folder / "site"
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-build-isolation", "--no-deps"]
    done = subprocess.run([*pip, "--target", str(site), str(copy)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return site


@pytest.fixture(scope="session")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the distribution `arena-toys` of tests/plugin is installed."""
    return install_plugin(ROOT / "tests" / "plugin", tmp_path_factory.mktemp("plugin"))
