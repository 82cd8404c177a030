"""One undisturbed run of the tiny suite, which others are held to."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.suite import TINY, measure


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the tiny suite, run in one process."""
    where = tmp_path_factory.mktemp("tiny")
    outcome = measure(TINY, where)
    assert outcome.done == 56
    assert outcome.lost == {}
    return where / "out"
