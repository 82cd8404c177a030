"""A fresh Python process that works on what it is handed and has nothing else of this one's memory.

Requests go there as pickles. What comes back is bytes and JSON, which cannot run code here.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, BinaryIO

from fedarena.core.errors import ToldByProcess, describe

LONGEST = 100_000
"""The most bytes of a message, without the answer."""
PATIENCE = 2.0
"""Seconds that a process has to end after it has closed its line."""

Say = Callable[[Any], None]
"""Sends a message, which JSON can hold, before the answer."""


class FreshProcess:
    """`python -m module`, which calls `serve`. It ends when nobody holds it any more, and with this process.

    Args:
        device: where it computes. Otherwise torch computes there as it does here.

    Attributes:
        path: where it looks for modules.
    """

    def __init__(self, module: str, device: str = "cpu") -> None:
        import torch

        self.path = module_path()
        # A group of its own, so that Ctrl-C ends it by way of this process alone.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": self.path},
            process_group=0,
        )
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


def module_path() -> str:
    """Where modules are looked for here, as `PYTHONPATH` says it to another process."""
    return os.pathsep.join(entry or os.getcwd() for entry in sys.path)


def ask(module: str, request: Any, device: str = "cpu", heard: Say = lambda message: None) -> bytes:
    """The answer of a process that has this request alone. See `FreshProcess`. Raises ToldByProcess."""
    process = FreshProcess(module, device)
    try:
        return process.ask(request, heard)
    finally:
        process.end()


def _end(process: subprocess.Popen[bytes]) -> None:
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


_serving = False


def is_fresh() -> bool:
    """Whether this is a fresh process."""
    return _serving


def serve(work: Callable[[Any, Say], bytes]) -> None:
    """Answer requests, in the fresh process. What it prints goes to stderr, and it ends with its parent."""
    global _serving
    _serving = True
    line, source = os.fdopen(os.dup(1), "wb"), os.fdopen(os.dup(0), "rb")
    os.dup2(2, 1)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    requests: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_receive, args=(source, requests), daemon=True).start()

    def send(kind: str, content: Any, more: bytes = b"") -> None:
        line.write(json.dumps([kind, content]).encode() + b"\n" + more)
        line.flush()

    _compute_as(*pickle.loads(requests.get()))
    while True:
        try:
            answer = work(pickle.loads(requests.get()), lambda message: send("message", message))
            send("answer", len(answer), answer)
        except Exception as error:
            send("error", describe(error))


def _receive(source: BinaryIO, requests: SimpleQueue[bytes]) -> None:
    """Take requests, and end this process when its parent has ended: nobody else holds the line's other end."""
    while len(head := source.read(8)) == 8:
        requests.put(source.read(int.from_bytes(head, "little")))
    os._exit(1)


def _compute_as(threads: int, flush: bool, device: str) -> None:
    import torch

    from fedarena.core.tensors import find_device

    torch.set_num_threads(threads)
    torch.set_flush_denormal(flush)
    find_device(device)
