"""Exceptions whose message is written for the user, and one-line descriptions of all others."""

from __future__ import annotations

import traceback
from pathlib import Path


class UserError(Exception):
    """Bad input. The message names the option, its value and what is allowed.

    The command line prints it as one line on stderr and exits with code 2, without a traceback.
    Library callers can catch it like any other exception.
    """


class WorkerDied(Exception):
    """A worker process or machine was lost: killed, out of memory or cut off. Its work may be tried again.

    The command line prints it as one line on stderr and exits with code 1, without a traceback.
    """


class ToldByProcess(Exception):
    """What went wrong in another process, in its words."""


def describe(error: Exception) -> str:
    """The type, message and innermost place of an exception, in one line."""
    if isinstance(error, ToldByProcess):
        return str(error)
    frame = traceback.extract_tb(error.__traceback__)[-1]
    text = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}: {text} (in {frame.name}, {Path(frame.filename).name}:{frame.lineno})"
