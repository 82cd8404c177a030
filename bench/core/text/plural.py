"""Counts with their nouns in singular or plural."""

from __future__ import annotations


def plural(n: int, one: str, many: str = "") -> str:
    """A count with its noun: `1 trial`, `1,506 trials`.

    Args:
        many: the plural, where it is not the singular with an s.
    """
    return f"{n:,} {one if n == 1 else many or f'{one}s'}"
