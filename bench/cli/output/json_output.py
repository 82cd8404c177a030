"""JSON on stdout, and nothing else: what methods print while a command works goes to stderr."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any, TextIO

ESCAPED = {code: f"\\u{code:04x}" for code in range(0x7F, 0xA0)}
"""Control characters that JSON may hold as they are. A terminal obeys them."""
_stdout: list[TextIO] = []
"""The stdout of the command that is carried out with `--json`."""


@contextmanager
def json_alone() -> Iterator[None]:
    """Within it `print_json` alone writes to stdout."""
    with _own_stdout() as out:
        _stdout.append(out)
        try:
            with redirect_stdout(sys.stderr):
                yield
        finally:
            _stdout.pop()


@contextmanager
def _own_stdout() -> Iterator[TextIO]:
    """A stream to stdout; descriptor 1, to which other languages and other processes write, is stderr meanwhile."""
    try:
        os.fstat(2)
        copy = os.dup(1) if sys.stdout.fileno() == 1 else None
    except (OSError, ValueError):  # a stream of a test or a notebook, or one that is closed
        copy = None
    if copy is None:
        yield sys.stdout
        return
    sys.stdout.flush()
    os.dup2(2, 1)
    try:
        with open(copy, "w", encoding=sys.stdout.encoding, errors="replace", closefd=False) as out:
            yield out
    finally:
        os.dup2(copy, 1)
        os.close(copy)


def print_json(content: Any, indent: int = 2) -> int:
    """Print plain data, in which no number may be infinite or NaN; 0, the exit code of a command that does this."""
    text = json.dumps(content, indent=indent, ensure_ascii=False, allow_nan=False)
    print(text.translate(ESCAPED), file=_stdout[-1] if _stdout else sys.stdout)
    return 0
