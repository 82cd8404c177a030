"""Where a record was made: versions, machine, commit."""

from __future__ import annotations

import os
import platform
import subprocess
from functools import cache
from importlib.metadata import version
from pathlib import Path

from fedarena import __version__
from fedarena.records.schema import Environment


@cache
def environment() -> Environment:
    """Where a record was made."""
    libraries = ("torch", "numpy", "scipy", "scikit-learn", "torchmetrics", "dp-accounting")
    return {
        "fedarena": __version__,
        "commit": _commit(),
        "python": platform.python_version(),
        "libraries": {name: version(name) for name in libraries},
        "machine": platform.machine(),
        "system": platform.system(),
        "cpus": os.cpu_count(),
    }


def _commit() -> str | None:
    """The commit of a source checkout, or None for an installed package."""
    root = Path(__file__).resolve().parents[2]
    if not (root / "pyproject.toml").exists():
        return None
    description = subprocess.run(
        ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12"], capture_output=True, text=True
    )
    return description.stdout.strip() or None
