"""The papers' numbers, for tests."""

from __future__ import annotations

from collections.abc import Sequence

from fedarena.reproduce.published import Published
from fedarena.reproduce.tables import TABLES, table_of


def every_published_number() -> Sequence[tuple[str, Published]]:
    return [(name, published) for name in TABLES for published in table_of(name).published]
