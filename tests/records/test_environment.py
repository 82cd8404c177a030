"""Where a record was made."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from helpers.paths import ROOT

import fedarena
from fedarena.records.environment import environment


def test_a_checkout_s_commit_is_recorded() -> None:
    head = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, text=True)
    if head.returncode or not Path(fedarena.__file__).resolve().is_relative_to(ROOT):
        pytest.skip("the package is not read from a checkout")
    assert environment()["commit"]
