"""A fresh interpreter for tests that run the real command, or import in an order of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def run_python(code: str, *args: str, cwd: Path, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run `code` with one thread, with `path` in front of PYTHONPATH."""
    search = [str(path)] if path else []
    search += [os.environ["PYTHONPATH"]] if os.environ.get("PYTHONPATH") else []
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(search), "OMP_NUM_THREADS": "1"}
    return subprocess.run([sys.executable, "-c", code, *args], cwd=cwd, env=env, capture_output=True, text=True)
