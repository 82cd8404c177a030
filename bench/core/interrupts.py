"""Interrupts by Ctrl-C or SIGTERM, which end a command whoever catches them, and do not cut short what ends a run."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)
_came = False
"""Whether one has come since they are heeded; False while they are not."""


@contextmanager
def heeded_interrupts(ends: bool = False) -> Iterator[None]:
    """The context ends with KeyboardInterrupt after an interrupt, even if what was running caught that.

    Libraries may take it for an error of their own, such as an import that failed. The run would go on without a trial.

    Args:
        ends: whether this process ends afterwards. It ignores interrupts from then on.
    """
    global _came
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}
    for number, handler in before.items():
        if number == signal.SIGTERM or handler is signal.default_int_handler:  # a shell may have it ignored
            signal.signal(number, _interrupt)
    hook = sys.unraisablehook

    def told(lost: Any) -> None:  # an interrupt in what cannot raise it, such as a destructor, has been heeded
        if not issubclass(lost.exc_type, KeyboardInterrupt):
            hook(lost)

    sys.unraisablehook = told
    try:
        yield
        require_no_interrupt()
    except BaseException:
        require_no_interrupt()
        raise
    finally:
        _came = False
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, signal.SIG_IGN if ends else handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    global _came
    _came = True
    raise KeyboardInterrupt


def require_no_interrupt() -> None:
    """Raise KeyboardInterrupt if an interrupt has come, and was caught."""
    if _came:
        raise KeyboardInterrupt


@contextmanager
def _kept_handlers() -> Iterator[tuple[signal.Signals, ...]]:
    """The signals that this thread may handle: all in the main thread, else none. They are handled as before later."""
    own = SIGNALS if threading.current_thread() is threading.main_thread() else ()
    before = {number: signal.getsignal(number) for number in own}
    try:
        yield own
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ignore interrupts while the context is open."""
    with _kept_handlers() as own:
        for number in own:
            signal.signal(number, signal.SIG_IGN)
        yield


@contextmanager
def unchanged_interrupts() -> Iterator[None]:
    """What a library makes of interrupts while the context is open ends with it, and is an interrupt.

    Ray ends the process at SIGTERM, for one.
    """
    with _kept_handlers():
        try:
            yield
        except SystemExit:
            raise KeyboardInterrupt from None


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
