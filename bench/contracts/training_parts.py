"""The parts of a training that an attack may read beside the rounds that it chose."""

from __future__ import annotations

LAST_ROUNDS, OTHER_ROUNDS = "last rounds", "other rounds"
"""Their names; `fedarena.contracts.inference.Watch.elsewhere` says where they lie."""
