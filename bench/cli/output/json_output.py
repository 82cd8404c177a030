"""JSON on stdout, and nothing else: what methods print while a command works goes to stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any, TextIO

_stdout: list[TextIO] = []
"""The stdout of the command that is carried out with `--json`."""


@contextmanager
def json_alone() -> Iterator[None]:
    """Within it `print_json` alone writes to stdout."""
    _stdout.append(sys.stdout)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _stdout.pop()


def print_json(content: Any, indent: int = 2) -> int:
    """Print plain data, in which no number may be infinite or NaN; 0, the exit code of a command that does this."""
    text = json.dumps(content, indent=indent, ensure_ascii=False, allow_nan=False)
    print(text, file=_stdout[-1] if _stdout else sys.stdout)
    return 0
