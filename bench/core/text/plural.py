"""Numbers of things in words, singular where it is one."""

from __future__ import annotations


def plural(n: int, one: str, many: str = "") -> str:
    """`1 trial`, `1,506 trials`; `many` where it is not `one` with an s."""
    return f"{n:,} {one if n == 1 else many or f'{one}s'}"
