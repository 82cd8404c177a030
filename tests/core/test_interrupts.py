"""Interrupts do not cut short the end of a run, and do not reach what has only begun to start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.fresh_python import run_python

from fedarena.core.interrupts import hiding_interrupts, uninterrupted

SHOW = "import signal; print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()))"


def test_nothing_interrupts_what_must_come_to_its_end() -> None:
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
    with uninterrupted():
        os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)


def test_a_process_that_starts_does_not_see_an_interrupt() -> None:
    def shown() -> str:
        return subprocess.run([sys.executable, "-c", SHOW], capture_output=True, text=True).stdout

    with hiding_interrupts():
        assert shown() == "True\n"
    assert shown() == "False\n"


@pytest.mark.parametrize(("words", "ignored"), [("", True), ("['list', '--json']", False)])
def test_only_a_process_that_ends_ignores_interrupts(words: str, ignored: bool, tmp_path: Path) -> None:
    code = (
        "import signal; from fedarena.cli import main\n"
        f"main({words}); print(signal.getsignal(signal.SIGINT) == signal.SIG_IGN)"
    )
    assert run_python(code, "list", "--json", cwd=tmp_path).stdout.splitlines()[-1] == str(ignored)
