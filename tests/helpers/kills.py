"""Ways to end a run, and a run that is ended at a moment that was drawn."""

from __future__ import annotations

import os
import random
import re
import signal
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from helpers.forked_bench import Start, Starter
from helpers.killed_runs import PATIENCE, processes, wait_for, workers

SIGNALS = ("KILL", "KILL group", "TERM", "TERM group", "HUP", "INT", "INT group", "INT twice")
INSIDE = ("event", "write")
"""The run kills itself: before a use of a file, or in the middle of a write."""
OF_WORKERS = ("worker", "all workers", "tracker")
"""What loky would bear: the run goes on, and is killed a little later."""
CODES = {"KILL": -signal.SIGKILL, "TERM": 130, "INT": 130, "HUP": -signal.SIGHUP, "event": -9, "write": -signal.SIGXFSZ}
"""How a run ends after each; after `OF_WORKERS` as after KILL."""
OF_THE_TRACKER = re.compile(
    r"Traceback \(most recent call last\):\n  File \"\S*/resource_tracker\.py\".*?\nKeyError: .*\n", re.DOTALL
)
"""What loky's next tracker prints of semaphores that it was never told of."""
OF_RAY = ("ray::_call", "ray::IDLE")
"""Names of Ray's workers, at work and not. Its agents have such names, too, and a node dies with them."""
WITHOUT_A_NODE = {
    1: "bench: the Ray cluster is gone",
    2: "bench: option 'engine' is ray, but no cluster can be started",
}
"""What a run on Ray says whose only node was killed, by exit code: while it ran, and while it started."""
INTERRUPTED = "bench: interrupted; what was written is complete\n"


class Fault(Exception):
    """Something that must not happen: its sort, and what it is."""


@dataclass(frozen=True)
class Kill:
    """What is done to a run, and when.

    Attributes:
        how: one of `SIGNALS`, to the process or its whole group; of `INSIDE`; of `OF_WORKERS`; or Ray's `raylet`.
        records: so many more records are waited for first. seconds: and then so long.
        number: of the use of a file, or bytes of the longest file. gap: seconds between two signals.
        anew: whether Python is started too. beside: whether a second run works in the folder, which nobody kills.
    """

    how: str
    records: int = 0
    seconds: float = 0.0
    number: int = 0
    gap: float = 0.0
    anew: bool = False
    beside: bool = False

    def start(self, argv: tuple[str, ...], where: str) -> Start:
        """The start of the run."""
        event, size = (self.number if self.how == way else 0 for way in INSIDE)
        return Start(argv, where, event=event, size=size)


def draw(rng: random.Random, ways: tuple[str, ...], start_up: float, beside: float) -> Kill:
    """A kill at a random moment.

    Args:
        start_up: about the seconds until the first record. beside: how often a second run works in the folder.
    """
    how, records, anew = rng.choice(ways), rng.choice([0, 0, 1, 2, 4, 8]), rng.random() < 0.1
    number = {"event": rng.randint(1, 120), "write": rng.randint(200, 30_000)}.get(how, 0)
    latest = 0.3 if records else start_up * (1.5 if anew else 1.0)
    seconds, gap = round(rng.uniform(0, latest), 3), round(rng.uniform(0, 0.4), 3)
    return Kill(how, records, seconds, number, gap, anew, rng.random() < beside)


class Run:
    """A run that was started."""

    def __init__(self, starter: Starter, start: Start, anew: bool = False) -> None:
        self._starter, self._start, self._code = starter, start, None
        for name in ("begun", "err"):  # of an earlier start
            Path(self._file(name)).unlink(missing_ok=True)
        self.pid = starter.start(start, anew)

    def code(self) -> int | None:
        """Its exit code; None as long as it runs."""
        if self._code is None:
            self._code = self._starter.code(self.pid)
        return self._code

    def ended(self) -> bool:
        """Whether it has ended."""
        return self.code() is not None

    def processes(self) -> dict[int, str]:
        """Command lines of its processes that are alive, by id."""
        return processes(self.pid, self._start.mark)

    def kill(self, kill: Kill, count: object) -> bool:
        """Do what a kill says at its moment; whether it came in time. `count` gives the number of records."""
        assert callable(count)
        if kill.how in INSIDE:
            wait_for(self.ended)
            return self.code() == CODES[kill.how]
        wanted = count() + kill.records
        wait_for(lambda: count() >= wanted, self.ended)
        time.sleep(kill.seconds)
        if self.ended() or not self._signal(kill):
            return False
        if kill.how in OF_WORKERS:
            wanted = count() + 1
            if not wait_for(lambda: count() >= wanted, self.ended) and not self.ended():
                raise Fault("hang", f"nothing was measured for {PATIENCE:g} s")
            if not self.ended():
                os.kill(self.pid, signal.SIGKILL)
        return True

    def _signal(self, kill: Kill) -> bool:
        """Send the signal, or both; whether there was whom to send it to."""
        if kill.how in SIGNALS:
            number = signal.Signals[f"SIG{kill.how.split()[0]}"]
            send = partial(os.kill if " " not in kill.how else os.killpg, self.pid, number)
            send()
            time.sleep(kill.gap if "twice" in kill.how else 0)
            if "twice" in kill.how and not self.ended():
                send()
            return True
        if "worker" in kill.how:
            found = workers(self.pid) or [one for one, line in self.processes().items() if line.startswith(OF_RAY)]
        else:
            name = {"tracker": "resource_tracker", "raylet": "raylet/raylet"}[kill.how]
            found = [one for one, line in self.processes().items() if name in line]
        for one in found if kill.how == "all workers" else found[:1]:
            os.kill(one, signal.SIGKILL)
        return bool(found)

    def require_end(self, kill: Kill | None) -> int:
        """Wait for the end of it and of all its processes; the exit code. Raises Fault for one that should not be."""
        if not wait_for(self.ended):
            raise Fault("hang", f"it goes on after {PATIENCE:g} s")
        if not wait_for(lambda: not self.processes(), every=0.1):
            raise Fault("left over", f"processes {self.processes()}")
        code = self.code()
        assert code is not None
        usual = 0 if kill is None else CODES.get(kill.how.split()[0], -signal.SIGKILL)
        if not Path(self._file("begun")).exists():
            return code  # Python itself was still starting
        told = self.told()
        if code not in (0, usual) and not (
            kill and kill.how == "raylet" and told.startswith(WITHOUT_A_NODE.get(code, "-"))
        ):
            raise Fault("output", f"exit code {code}: {told[-2000:]}")
        if kill is not None and kill.how == "tracker":
            told = OF_THE_TRACKER.sub("", told)
        if "Traceback" in told or (code == 130 and told != INTERRUPTED):
            raise Fault("output", f"exit code {code}, and on stderr: {told[-2000:]}")
        return code

    def told(self) -> str:
        """What it printed on stderr."""
        return Path(self._file("err")).read_text(errors="replace")

    def _file(self, name: str) -> str:
        return f"{self._start.where}/{self._start.name}.{name}"
