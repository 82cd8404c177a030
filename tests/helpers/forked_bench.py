"""Starts `bench` very often: forked from a process that has imported what a run imports, which takes seconds.

Each start is a session of its own, as from a terminal. It may carry what kills it: see `Start`.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

MARK = "FEDARENA_TEST_RUN"
"""A variable that every process of a start inherits."""
_RUN = "import sys; from fedarena.cli import main; from helpers import forked_bench; forked_bench.{}; sys.exit(main())"
_EVENTS = ("open", "os.rename", "os.remove", "os.chmod", "os.mkdir", "os.link")


@dataclass(frozen=True)
class Start:
    """One start of `bench`.

    Attributes:
        argv: the words of the command. where: the present folder.
        name: what is printed goes to the files NAME.out and NAME.err there. NAME.begun is made when the command begins:
            from then on its own handling of signals counts.
        event: before this use of the folder `out` the process kills itself; 0: never.
        size: no file grows beyond so many bytes; who tries to is killed in the middle of the write. 0: no limit.
    """

    argv: tuple[str, ...]
    where: str
    name: str = "run"
    event: int = 0
    size: int = 0

    @property
    def mark(self) -> str:
        """The value of `MARK` in all processes of the start."""
        return f"{self.where}/{self.name}"


class Starter:
    """The process that others are forked from. `modules` are those that it imports first."""

    def __init__(self, modules: Iterable[str], environment: Mapping[str, str]) -> None:
        self._anew: dict[int, subprocess.Popen[bytes]] = {}
        search = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
        self._environment = {**os.environ, **environment, "PYTHONPATH": search}
        self._process = subprocess.Popen(
            [sys.executable, "-c", _RUN.format("become()")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=self._environment,
            text=True,
        )
        self._ask([*modules])

    def start(self, start: Start, anew: bool = False) -> int:
        """Start one; its process's number. With `anew` Python is started, too."""
        if not anew:
            return int(self._ask(asdict(start)))
        code = _RUN.format("begin(sys.argv[1])")
        process = subprocess.Popen(
            [sys.executable, "-c", code, json.dumps(asdict(start))],
            stderr=subprocess.DEVNULL,  # of Python itself, should it be interrupted before the command begins
            env=self._environment,
            start_new_session=True,
        )
        self._anew[process.pid] = process
        return process.pid

    def code(self, pid: int) -> int | None:
        """The exit code of one, negative after a signal; None as long as it runs. It is told once."""
        return self._anew[pid].poll() if pid in self._anew else self._ask({"wait": pid})

    def close(self) -> None:
        """End the process."""
        self._process.communicate()

    def _ask(self, order: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


def become() -> None:
    """Fork a process for every line of stdin; return in that process, which is that of a start."""
    while line := sys.stdin.readline():
        order = json.loads(line)
        answer: int | None = 0
        if isinstance(order, list):
            for module in order:
                with suppress(Exception):
                    import_module(module)
            gc.collect()
            gc.freeze()  # at its end a forked process would look through all of it
        elif "wait" in order:
            ended, status = os.waitpid(order["wait"], os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if ended else None
        elif (answer := os.fork()) == 0:
            os.setsid()
            begin(line)
            return
        print(json.dumps(answer), flush=True)
    os._exit(0)


def begin(text: str) -> None:
    """Make this process that of a start, which is given as JSON."""
    start = Start(**json.loads(text))
    os.chdir(start.where)
    os.environ |= {MARK: start.mark, "TMPDIR": f"{start.where}/tmp"}
    for number, name in ((0, os.devnull), (1, f"{start.name}.out"), (2, f"{start.name}.err")):
        file = os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(file, number)
        os.close(file)
    # Shells start what goes to the background with SIGINT ignored, which children inherit.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if start.event:
        _kill_itself(start.event)
    if start.size:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (start.size, start.size))
    sys.argv[1:] = start.argv
    Path(f"{start.name}.begun").touch()


def _kill_itself(number: int) -> None:
    """Kill this process before the event of this number that is about a file below `out`."""
    left, process = number, os.getpid()

    def hook(event: str, args: tuple[Any, ...]) -> None:
        nonlocal left
        if event in _EVENTS and "out" in Path(str(args[0])).parts and os.getpid() == process:
            left -= 1
            if left == 0:
                os.kill(process, signal.SIGKILL)

    sys.addaudithook(hook)
