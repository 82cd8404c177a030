"""Data sets and partitions."""

CARDS: dict[str, str] = {}
