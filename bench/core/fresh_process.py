"""A fresh Python process that works on what it is handed and has nothing else of this one's memory.

Requests go there as pickles. What comes back is bytes and JSON, which cannot run code here.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import weakref
from contextlib import suppress
from typing import Any

from fedarena.core.errors import ToldByProcess
from fedarena.core.process_template import Forked, fork, module_path
from fedarena.core.request_loop import Say

LONGEST = 100_000
"""The most bytes of a message, without the answer."""
FORKS = sys.platform == "linux"
"""Whether processes are forked from a template. Elsewhere libraries do not bear it, and each is started anew."""
PATIENCE = 2.0
"""Seconds that a process has to end after it has closed its line."""


class FreshProcess:
    """It answers with the function `work` of a module. It ends when nobody holds it any more, and with this process.

    Args:
        device: where it computes. Otherwise torch computes there as it does here.

    Attributes:
        path: where it looks for modules.
    """

    def __init__(self, module: str, device: str = "cpu") -> None:
        import torch

        self.path = module_path()
        self._process = fork(module) if FORKS else _started(module)
        self.end = weakref.finalize(self, _end, self._process)
        self._send((torch.get_num_threads(), sys.float_info.min / 2 == 0, device))

    def ask(self, request: Any, heard: Say = lambda message: None) -> bytes:
        """Its answer to a request.

        Args:
            heard: called with each message.

        Raises:
            ToldByProcess: it raised an exception, whose description this is, or ended without an answer.
        """
        self._send(request)
        assert self._process.stdout is not None
        answer = _listen(self._process.stdout, heard)
        if answer is None:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(PATIENCE)
            raise ToldByProcess(f"its process {_ending(self._process.returncode)} and gave no answer")
        return answer

    def _send(self, request: Any) -> None:
        from fedarena.core.compact_pickle import dumps

        data = dumps(request)
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(len(data).to_bytes(8, "little") + data)
            self._process.stdin.flush()


def _started(module: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "fedarena.core.request_loop", module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": module_path()},
        process_group=0,  # so that Ctrl-C ends it by way of this process alone
    )


def ask(module: str, request: Any, device: str = "cpu", heard: Say = lambda message: None) -> bytes:
    """The answer of a process that has this request alone. See `FreshProcess`. Raises ToldByProcess."""
    process = FreshProcess(module, device)
    try:
        return process.ask(request, heard)
    finally:
        process.end()


def _end(process: Forked | subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for line in (process.stdin, process.stdout):
        assert line is not None
        with suppress(OSError):
            line.close()


def _listen(line: Any, heard: Say) -> bytes | None:
    """The answer; None where the line ends before it. Raises ToldByProcess."""
    try:
        while text := line.readline(LONGEST):
            kind, content = json.loads(text)
            if kind == "answer":
                answer: bytes = line.read(content)
                return answer if len(answer) == content else None
            if kind == "error":
                raise ToldByProcess(str(content))
            heard(content)
    except (ValueError, TypeError, LookupError, OverflowError, RecursionError, MemoryError):
        raise ToldByProcess("its process sent what is no message") from None
    return None


def _ending(status: int | None) -> str:
    if status is None:
        return "closed its line"
    return f"ended with status {status}" if status >= 0 else f"was ended by {signal.Signals(-status).name}"
