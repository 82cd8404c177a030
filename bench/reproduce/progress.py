"""How the steps of a measurement report their progress."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[float, str], None]
"""It is called with the share that is done, in [0, 1], and what is being done."""


def prefixed(progress: Progress, name: str) -> Progress:
    """The same progress, with a name before each text."""
    return lambda share, text: progress(share, f"{name}: {text}")


def step(progress: Progress, index: int, count: int) -> Progress:
    """The progress of one of `count` steps that take equally long."""
    return lambda share, text: progress((index + share) / count, text)


def between(progress: Progress, start: float, end: float) -> Progress:
    """The progress of a step that takes from `start` to `end` of the whole."""
    return lambda share, text: progress(start + (end - start) * share, text)
