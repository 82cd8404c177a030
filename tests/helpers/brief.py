"""Calls in worker processes, where parties that train alone take as few steps as in the process of the tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fedarena.goals import clean_run
from fedarena.problem.alone import parties


def call_briefly(steps: int, call: Callable[..., Any], function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Call as a worker does. The worker, which later tests have as well, is then as it was."""
    before = parties.STEPS, parties.MOST_STEPS, clean_run.KNOWN
    parties.STEPS, parties.MOST_STEPS, clean_run.KNOWN = steps, steps, {}
    try:
        return call(function, args)
    finally:
        parties.STEPS, parties.MOST_STEPS, clean_run.KNOWN = before
