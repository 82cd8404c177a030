"""Runs groups of trials in parallel worker processes on this machine.

First all federations, then all inference attacks, each in whichever process is free. A run that nothing is left to do
with, such as a poisoned one, is complete as soon as the runs are there that it is measured against. Results do not
depend on the number of workers: every piece is a pure function of its spec, computed with one thread.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from queue import Queue
from typing import Any

from fedarena.records import Record
from fedarena.scores import Clean, add_reference, references
from fedarena.spec import GroupSpec
from fedarena.trial import Gallery, GroupResult, Prepared, attack, gather, prepare

Report = Callable[[int, float, str], None]
"""(index of the group, share done, what it is doing)."""
News = Callable[[tuple[int, int, float, str]], None]
"""Takes (group, piece of the group, share of the group that this piece has done, what it is doing)."""
Call = tuple[Callable[..., Any], tuple[Any, ...]]

TRAINING = 0.1
"""Share of a group's time that the training is taken to need, for progress."""


def run_groups(
    groups: Sequence[GroupSpec],
    jobs: int,
    report: Report = lambda i, share, text: None,
    finished: Callable[[Record], object] = lambda record: None,
) -> list[GroupResult]:
    """Every group's result, in order.

    Args:
        groups: FedAvg on the same problem and seed must be among them for every defended run, and the unattacked
            run of the same defense for every poisoned one.
        jobs: worker processes; 1 runs in this process.
        report: called from this process as groups progress.
        finished: called from this process with each record as soon as it is complete.
    """
    with _workers(jobs, report) as (run, news):
        trained: dict[int, list[Prepared]] = {}
        clean: Clean = {}
        waiting: list[tuple[int, int]] = []
        done: dict[tuple[int, int], tuple[Record, Gallery | None]] = {}
        calls: list[Call] = []
        for group, cells in run([(_prepare, (i, group, news)) for i, group in enumerate(groups)]):
            trained[group] = cells
            clean |= {references(cell.record)[0]: cell.record for cell in cells if not cell.record["knows"]}
            waiting += [(group, j) for j in range(len(cells))]
            for i, j in [w for w in waiting if clean.keys() >= set(references(trained[w[0]][w[1]].record))]:
                waiting.remove((i, j))
                cell, part = trained[i][j], (1 - TRAINING) / len(trained[i])
                add_reference(cell.record, clean)
                if cell.challenge is not None:
                    calls.append((_attack, (i, j, cell, part, news)))
                    continue
                done[i, j] = cell.record, None
                finished(cell.record)
                news((i, j, part, "done"))
        if waiting:
            raise ValueError("a defended run without FedAvg's, or a poisoned one without the same run unattacked")
        for where, result in run(calls):
            done[where] = result
            finished(result[0])
    return [gather(g, [done[i, j] for j in range(len(trained[i]))]) for i, g in enumerate(groups)]


def one_thread() -> None:
    """One torch thread in this process: trials are the unit of parallelism, and a second OpenMP thread on a
    busy machine costs far more than it gives."""
    import torch

    torch.set_num_threads(1)


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def _workers(jobs: int, report: Report) -> Iterator[tuple[Callable[[Sequence[Call]], Iterable[Any]], News]]:
    """(run calls and yield their results as they come, where calls send their news)."""
    tally = _Tally(report)
    if jobs <= 1:
        one_thread()
        yield (lambda calls: (function(*args) for function, args in calls)), tally
        return
    import joblib

    with multiprocessing.get_context("spawn").Manager() as manager:
        news: Queue[Any] = manager.Queue()
        listener = threading.Thread(target=_listen, args=(news, tally), daemon=True)
        listener.start()
        parallel = joblib.Parallel(n_jobs=jobs, backend="loky", return_as="generator_unordered")
        try:
            yield (lambda calls: parallel(joblib.delayed(function)(*args) for function, args in calls)), news.put
        finally:
            news.put(None)
            listener.join()


def _prepare(group: int, spec: GroupSpec, news: News) -> tuple[int, list[Prepared]]:
    one_thread()
    return group, prepare(spec, lambda share, text: news((group, -1, TRAINING * share, text)))


def _attack(group: int, piece: int, cell: Prepared, part: float, news: News) -> Any:
    one_thread()
    done = attack(cell, lambda share, text: news((group, piece, part * share, text)))
    news((group, piece, part, "attacking"))
    return (group, piece), done


class _Tally:
    """Adds up the shares that a group's pieces have done."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._done: dict[int, dict[int, float]] = defaultdict(dict)

    def __call__(self, item: tuple[int, int, float, str]) -> None:
        group, piece, share, text = item
        self._done[group][piece] = share
        total = sum(self._done[group].values())
        self._report(group, min(total, 1.0), "done" if total > 0.9999 else text)


def _listen(news: Queue[Any], tally: _Tally) -> None:
    while (item := news.get()) is not None:
        tally(item)
