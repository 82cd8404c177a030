"""The progress bar of `bench suite`: how much is done, how long the rest may take, and what was done last.

The time left is estimated from what trials have cost and not from their number, since a poisoned run may take a hundred
times as long as an attack on a run that exists already.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from fedarena.runs.suite.run import ProgressReport

PERIOD = 30.0
"""Seconds between two lines if stderr is not a terminal but, for example, a log of CI."""


@contextmanager
def progress(quiet: bool, what: str) -> Iterator[ProgressReport]:
    """A bar on stderr from the first report on; if stderr is not a terminal, a line now and then and at the end."""
    if quiet:
        yield lambda done, total, text, left: None
    elif sys.stderr.isatty():
        with _bar(what) as report_progress:
            yield report_progress
    else:
        with _lines(what) as report_progress:
            yield report_progress


@contextmanager
def _lines(what: str) -> Iterator[ProgressReport]:
    printed, last = time.monotonic(), ""

    def report_progress(done: int, total: int, text: str, left: float | None) -> None:
        nonlocal printed, last
        last = f"{what}: {done}/{total}"
        if done < total and time.monotonic() - printed >= PERIOD:
            printed = time.monotonic()
            rest = [] if left is None else [_left(left)]
            print(", ".join([last, *rest, text]), file=sys.stderr, flush=True)

    try:
        yield report_progress
    finally:
        if last:
            print(last, file=sys.stderr, flush=True)


@contextmanager
def _bar(what: str) -> Iterator[ProgressReport]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn
    from rich.table import Column
    from rich.text import Text

    from fedarena.cli.output.terminal import Terminal

    class Left(ProgressColumn):
        """The time left, which runs on between two reports."""

        def render(self, task: Task) -> Text:
            left, reported = task.fields["left"], task.fields["reported"]
            if left is None or task.finished:
                return Text("")
            return Text(_left(left - (time.monotonic() - reported)), style="progress.remaining")

    bar = Progress(
        TextColumn(what),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        Left(),
        TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1)),
        console=Terminal(file=sys.stderr),
        expand=True,
    )
    task = None

    def report_progress(done: int, total: int, text: str, left: float | None) -> None:
        nonlocal task
        if task is None:
            bar.start()
            task = bar.add_task(text, total=total, completed=done, left=left, reported=time.monotonic())
        bar.update(task, completed=done, total=total, description=text, left=left, reported=time.monotonic())

    try:
        yield report_progress
    finally:
        bar.stop()


def _left(seconds: float) -> str:
    return f"{span(seconds)} left" if seconds >= 0.5 else "longer than expected"


def span(seconds: float) -> str:
    """About how long, in words: "40 s", "12 min", "3.5 h"."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
