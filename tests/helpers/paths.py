"""Folders that tests read."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The repository."""

REPORTS = ROOT / "reports"

DATA = Path(os.environ.get("FEDARENA_DATA") or ROOT.parent / "shared" / "data")
"""The folder of the real data files; tests that need one skip where it is absent."""
