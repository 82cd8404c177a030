"""Where a record was made: versions, machine, commit."""

from __future__ import annotations

import os
import platform
import subprocess
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fedarena import __version__


@cache
def environment() -> dict[str, Any]:
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
    here = Path(__file__).resolve().parent
    if not (here.parent / "pyproject.toml").exists():
        return None
    asked = subprocess.run(
        ["git", "-C", str(here), "describe", "--always", "--dirty", "--abbrev=12"], capture_output=True, text=True
    )
    return asked.stdout.strip() or None
