"""Runs groups of trials in parallel worker processes on this machine.

Results do not depend on the number of workers: a group is a pure function of its spec, and every
worker computes with one thread.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Sequence
from queue import Queue
from typing import Any

from fedarena.trial import GroupResult, GroupSpec, run_group

Report = Callable[[int, float, str], None]
"""(index of the group, share done, what it is doing)."""


def run_groups(
    groups: Sequence[GroupSpec], jobs: int, report: Report = lambda i, share, text: None
) -> list[GroupResult]:
    """Every group's result, in order.

    Args:
        jobs: worker processes; 1 runs in this process.
        report: called from this process as groups progress.
    """
    jobs = min(jobs, len(groups))
    if jobs <= 1:
        one_thread()
        return [run_group(g, lambda share, text, i=i: report(i, share, text)) for i, g in enumerate(groups)]  # type: ignore[misc]
    import joblib

    with multiprocessing.get_context("spawn").Manager() as manager:
        news: Queue[Any] = manager.Queue()
        listener = threading.Thread(target=_listen, args=(news, report), daemon=True)
        listener.start()
        calls = (joblib.delayed(_work)(i, g, news) for i, g in enumerate(groups))
        try:
            results: list[GroupResult] = joblib.Parallel(n_jobs=jobs, backend="loky")(calls)
        finally:
            news.put(None)
            listener.join()
    return results


def one_thread() -> None:
    """One torch thread in this process: trials are the unit of parallelism, and a second OpenMP thread on a
    busy machine costs far more than it gives."""
    import torch

    torch.set_num_threads(1)


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _work(index: int, group: GroupSpec, news: Queue[Any]) -> GroupResult:
    one_thread()
    return run_group(group, lambda share, text: news.put((index, share, text)))


def _listen(news: Queue[Any], report: Report) -> None:
    while (item := news.get()) is not None:
        report(*item)
