"""Interrupts do not cut short the end of a run, and do not reach what has only begun to start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from helpers.fresh_python import run_python
from helpers.suite import BARE

from fedarena.core.interrupts import heeded_interrupts, hiding_interrupts, unchanged_interrupts, uninterrupted
from fedarena.runs.engine import Events, run
from fedarena.runs.executors import InProcess
from fedarena.runs.suite.suite import parse
from fedarena.runs.suite.trials import trials_of

SHOW = "import signal; print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()))"


def test_nothing_interrupts_what_must_come_to_its_end() -> None:
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
    with uninterrupted():
        os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)


def test_an_interrupt_that_a_library_catches_ends_the_command_all_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(error: type[BaseException] | None) -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        except KeyboardInterrupt:
            if error is not None:
                raise error from None

    class Dying:
        def __del__(self) -> None:
            interrupted(KeyboardInterrupt)

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), heeded_interrupts():
        Dying()
    assert capsys.readouterr().err == ""
    for error in (None, ImportError, SystemExit):
        with pytest.raises(KeyboardInterrupt), heeded_interrupts():
            interrupted(error)
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_run_does_not_go_on_after_an_interrupt_that_was_caught() -> None:
    done: list[int] = []

    class Caught(InProcess):
        def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
            done.append(1)
            with suppress(KeyboardInterrupt):
                os.kill(os.getpid(), signal.SIGINT)
            future: Future[Any] = Future()
            future.set_exception(ImportError("numpy"))
            return future

    groups = [trial.spec for trial in trials_of(parse(BARE, Path("bare.toml")), (0,))]
    with pytest.raises(KeyboardInterrupt), heeded_interrupts():
        run(groups, Caught(), Events(lost=lambda i, why: None))
    assert done == [1]
    run(groups[:1], InProcess(), Events(lost=lambda i, why: pytest.fail(why)))  # a later run is not interrupted


def test_a_process_that_starts_does_not_see_an_interrupt() -> None:
    def shown() -> str:
        return subprocess.run([sys.executable, "-c", SHOW], capture_output=True, text=True).stdout

    with hiding_interrupts():
        assert shown() == "True\n"
    assert shown() == "False\n"


def test_a_library_that_ends_the_process_at_an_interrupt_ends_the_run() -> None:
    def library() -> None:
        signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(number))
        os.kill(os.getpid(), signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), unchanged_interrupts():
        library()
    assert signal.getsignal(signal.SIGTERM) == before


def test_workers_that_start_do_not_see_an_interrupt(tmp_path: Path) -> None:
    code = (
        "import signal\n"
        "from joblib.externals.loky.backend.popen_loky_posix import Popen\n"
        "from fedarena.runs.executors import Local\n"
        "launch = Popen._launch\n"
        "def shown(*args):\n"
        "    print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()), flush=True)\n"
        "    return launch(*args)\n"
        "Popen._launch = shown\n"
        "place = Local(2)\n"
        "place.submit(int).result()\n"
        "place.stop()\n"
    )
    assert run_python(code, cwd=tmp_path).stdout == "True\nTrue\n"


@pytest.mark.parametrize(("words", "ignored"), [("", True), ("['list', '--json']", False)])
def test_only_a_process_that_ends_ignores_interrupts(words: str, ignored: bool, tmp_path: Path) -> None:
    code = (
        "import signal; from fedarena.cli import main\n"
        f"main({words}); print(signal.getsignal(signal.SIGINT) == signal.SIG_IGN)"
    )
    assert run_python(code, "list", "--json", cwd=tmp_path).stdout.splitlines()[-1] == str(ignored)
