"""A process that fresh ones are forked from: it has imported modules of the harness, and has run no method.

To start Python and import torch takes more than a second, a fork takes milliseconds. What a method keeps, patches or
breaks stays in the forked process, because nothing but imports ever happens in the template.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import warnings
import weakref
from contextlib import suppress
from threading import Lock
from typing import Any

from fedarena.core.request_loop import serve

SEVERAL = 3
"""From so many processes on it pays to import here what the first use of torch.func or torch.optim imports."""
POLL = 0.002
"""Seconds between two looks at whether a process has ended."""


def module_path() -> str:
    """Where modules are looked for here, as `PYTHONPATH` says it to another process."""
    return os.pathsep.join(entry or os.getcwd() for entry in sys.path)


class Forked:
    """A process that was forked from the template. Its interface is the part of `subprocess.Popen` that is used.

    Attributes:
        stdin, stdout: its lines, here. returncode: as that of `Popen`; None until `wait` has seen its end.
    """

    def __init__(self, template: Template, module: str) -> None:
        """Fork one, which runs `fedarena.core.request_loop` with the function `work` of a module."""
        inside, there = os.pipe()
        here, outside = os.pipe()
        self.stdin, self.stdout = os.fdopen(there, "wb"), os.fdopen(here, "rb")
        self.returncode: int | None = None
        self._template = template
        try:
            self.pid: int = template.request(
                {"module": module, "path": module_path(), "environment": dict(os.environ), "folder": os.getcwd()},
                (inside, outside, 2),
            )
        finally:
            os.close(inside)
            os.close(outside)

    def kill(self) -> None:
        """End it. Until `wait` has seen its end, no other process can have its number."""
        if self.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def wait(self, timeout: float = 2.0) -> int | None:
        """Its status if it ends in time, else None."""
        if self.returncode is None:
            with suppress(OSError, ValueError):  # the template has ended
                self.returncode = self._template.request({"wait": self.pid, "timeout": timeout})
        return self.returncode


class Template:
    """The template, as the process that owns it knows it. It ends with that process."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "fedarena.core.process_template", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env={**os.environ, "PYTHONPATH": module_path()},
                process_group=0,  # so that Ctrl-C does not end it before its owner
            )
        self._owner, self._control, self._lock = os.getpid(), ours, Lock()
        weakref.finalize(self, _close, ours, self._process)

    def usable(self) -> bool:
        """Whether it lives, and is this process's own."""
        return self._owner == os.getpid() and self._process.poll() is None

    def request(self, order: dict[str, Any], files: tuple[int, ...] = ()) -> Any:
        """Its answer. Raises OSError or ValueError where it has ended."""
        data = json.dumps(order).encode()
        with self._lock:
            socket.send_fds(self._control, [len(data).to_bytes(8, "little")], files)
            self._control.sendall(data)
            return json.loads(_receive(self._control, int.from_bytes(_receive(self._control, 8), "little")))


def _close(control: socket.socket, process: subprocess.Popen[bytes]) -> None:
    control.close()
    process.kill()  # it may still be importing, for seconds
    process.wait()


def _receive(control: socket.socket, size: int) -> bytes:
    parts: list[bytes] = []
    while size:
        parts.append(control.recv(size))
        if not parts[-1]:
            raise ConnectionError("the process that others are forked from has ended")
        size -= len(parts[-1])
    return b"".join(parts)


_templates: list[Template] = []
_lock = Lock()


def is_running() -> bool:
    """Whether this process has a template."""
    return bool(_templates) and _templates[0].usable()


def fork(module: str) -> Forked:
    """A fresh process, forked from this process's template, which is started where there is none."""
    with _lock:
        if not is_running():
            _templates[:] = [Template()]
        template = _templates[0]
    return Forked(template, module)


# -- in the template -------------------------------------------------------------------------------------


def _next_child(control: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Answer requests; return in a forked process, with its order and its three lines. End with the owner."""
    forks = 0
    while True:
        head, files, _, _ = socket.recv_fds(control, 8, 3)
        if not head:
            os._exit(0)
        order = json.loads(_receive(control, int.from_bytes(head, "little")))
        if "wait" in order:
            answer: int | None = _wait(order["wait"], order["timeout"])
        else:
            with suppress(ImportError):  # it may be where only the request says
                importlib.import_module(order["module"])  # once, for all that are forked later
            forks += 1
            if forks == SEVERAL:
                importlib.import_module("torch._dynamo")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # the threads of a library that do nothing
                answer = os.fork()
            if answer == 0:
                return order, list(files)
            for file in files:
                os.close(file)
        data = json.dumps(answer).encode()
        control.sendall(len(data).to_bytes(8, "little") + data)


def _wait(process: int, timeout: float) -> int | None:
    until = time.monotonic() + timeout
    while True:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= until:
            return None
        time.sleep(POLL)


def _become(order: dict[str, Any], files: list[int]) -> None:
    """Make this forked process one as if it had been started where the request came from."""
    os.setpgid(0, 0)
    for place, file in enumerate(files):
        os.dup2(file, place)
        os.close(file)
    os.environ.clear()
    os.environ.update(order["environment"])
    sys.path[:] = order["path"].split(os.pathsep)
    importlib.invalidate_caches()
    os.chdir(order["folder"])


def main(number: int) -> None:
    """Run the template, whose owner has the other end of a socket."""
    with socket.socket(fileno=number) as control:
        try:
            order, files = _next_child(control)
        except ConnectionError:  # the owner has ended
            os._exit(0)
    _become(order, files)
    serve(importlib.import_module(order["module"]).work)


if __name__ == "__main__":
    main(int(sys.argv[1]))
