"""Interrupts by Ctrl-C or SIGTERM, which do not cut short what ends a run."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def ignore_interrupts() -> None:
    """Ignore interrupts from now on, if this is the main thread: no other can be interrupted."""
    if threading.current_thread() is threading.main_thread():
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ignore interrupts while the context is open."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}
    ignore_interrupts()
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def hiding_interrupts() -> Iterator[None]:
    """Threads and processes that are started while the context is open do not see Ctrl-C until `see_interrupts`.

    Ctrl-C reaches all processes of a terminal. One that is still starting would die of it with a page of traceback.
    """
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def see_interrupts() -> None:
    """Let this thread see Ctrl-C again."""
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
