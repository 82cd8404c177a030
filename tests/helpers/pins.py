"""What pyproject.toml declares, and the versions that constraints.txt pins."""

from __future__ import annotations

import tomllib

from helpers.paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LINES = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
PINS = {name: version for name, _, version in (line.partition("==") for line in LINES)}
"""Distribution → version."""
