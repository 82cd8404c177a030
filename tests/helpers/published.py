"""The papers' numbers, for tests."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from fedarena.reproduce import TABLES
from fedarena.reproduce.published import Published


def every_table() -> Sequence[tuple[str, Published]]:
    return [(t, p) for t, m in TABLES.items() for p in getattr(import_module(m), "PUBLISHED", ())]
