"""The commit of the source."""

from __future__ import annotations

import subprocess
from pathlib import Path

NAME = "commit.txt"
"""The file of a built package that holds the commit; `setup.py` writes it."""


def source_commit() -> str | None:
    """The commit, with `-dirty` where files differ from it; None where neither git nor the package's build knows it."""
    package, root = (Path(__file__).resolve().parents[above] for above in (1, 2))
    if (root / "pyproject.toml").exists() and (root / ".git").exists():
        return _described(root)
    built = package / NAME
    return built.read_text(encoding="utf-8").strip() or None if built.exists() else None


def _described(root: Path) -> str | None:
    try:
        described = subprocess.run(
            ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12"], capture_output=True, text=True
        )
    except OSError:  # there is no git
        return None
    return described.stdout.strip() or None
