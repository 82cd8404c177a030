"""A fresh Python process that works on what it is handed and has nothing else of this one's memory.

The request goes there as a pickle. What comes back is bytes and JSON, which cannot run code here.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, BinaryIO

from fedarena.core.errors import ToldByProcess, describe

LONGEST = 100_000
"""The most bytes of a message, without the answer."""
PATIENCE = 2.0
"""Seconds that a process has to end after it has closed its line."""

Say = Callable[[Any], None]
"""Sends a message, which JSON can hold, before the answer."""


def ask(module: str, request: Any, device: str = "cpu", heard: Say = lambda message: None) -> bytes:
    """The answer of `python -m module`, which calls `serve`.

    Args:
        request: what it works on, and all that it is handed besides the path of modules and how torch computes here.
        heard: called with each message.

    Raises:
        ToldByProcess: it raised an exception, whose description this is, or ended without an answer.
    """
    import torch

    settings = torch.get_num_threads(), sys.float_info.min / 2 == 0, device
    data = pickle.dumps((settings, pickle.dumps(request)))
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    # A group of its own, so that Ctrl-C ends it by way of this process alone.
    with subprocess.Popen(
        [sys.executable, "-P", "-m", module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
        process_group=0,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            with suppress(BrokenPipeError):
                process.stdin.write(len(data).to_bytes(8, "little") + data)
                process.stdin.flush()
            answer = _listen(process.stdout, heard)
            if answer is None:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(PATIENCE)
                raise ToldByProcess(f"its process {_end(process.returncode)} and gave no answer")
            return answer
        finally:
            process.kill()
            with suppress(OSError):
                process.stdin.close()


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


def _end(status: int | None) -> str:
    if status is None:
        return "closed its line"
    return f"ended with status {status}" if status >= 0 else f"was ended by {signal.Signals(-status).name}"


def serve(work: Callable[[Any, Say], bytes]) -> None:
    """Carry out the request, in the fresh process. What it prints goes to stderr, and it ends with its parent."""
    line, request = os.fdopen(os.dup(1), "wb"), os.fdopen(os.dup(0), "rb")
    os.dup2(2, 1)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    data = request.read(int.from_bytes(request.read(8), "little"))
    threading.Thread(target=_end_with_parent, args=(request,), daemon=True).start()

    def send(kind: str, content: Any, more: bytes = b"") -> None:
        line.write(json.dumps([kind, content]).encode() + b"\n" + more)
        line.flush()

    try:
        settings, asked = pickle.loads(data)
        _compute_as(*settings)
        answer = work(pickle.loads(asked), lambda message: send("message", message))
        send("answer", len(answer), answer)
    except Exception as error:
        send("error", describe(error))


def _end_with_parent(request: BinaryIO) -> None:
    """End this process when its parent has ended, since nobody else holds the other end of the line."""
    request.read(1)
    os._exit(1)


def _compute_as(threads: int, flush: bool, device: str) -> None:
    import torch

    from fedarena.core.tensors import find_device

    torch.set_num_threads(threads)
    torch.set_flush_denormal(flush)
    find_device(device)
