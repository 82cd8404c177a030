"""Runs groups of trials in parallel worker processes on this machine.

First all federations, then all attacks, each attack in whichever process is free. Results do not depend
on the number of workers: every piece is a pure function of its spec, computed with one thread.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from queue import Queue
from typing import Any

from fedarena.spec import GroupSpec
from fedarena.trial import TRAINING, GroupResult, Prepared, attack, gather, prepare, run_group

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
    if jobs <= 1:
        one_thread()
        return [run_group(g, lambda share, text, i=i: report(i, share, text)) for i, g in enumerate(groups)]  # type: ignore[misc]
    import joblib

    with multiprocessing.get_context("spawn").Manager() as manager:
        news: Queue[Any] = manager.Queue()
        listener = threading.Thread(target=_listen, args=(news, report), daemon=True)
        listener.start()
        try:
            parallel = joblib.Parallel(n_jobs=jobs, backend="loky")
            prepared = parallel(joblib.delayed(_prepare)(i, g, news) for i, g in enumerate(groups))
            cells = [(i, j, cell) for i, group in enumerate(prepared) for j, cell in enumerate(group)]
            shares = [1 / len(prepared[i]) for i, _, _ in cells]
            calls = (joblib.delayed(_attack)(*c, share, news) for c, share in zip(cells, shares, strict=True))
            done = parallel(calls)
        finally:
            news.put(None)
            listener.join()
    return [gather(g, [d for d, (k, _, _) in zip(done, cells, strict=True) if k == i]) for i, g in enumerate(groups)]


def one_thread() -> None:
    """One torch thread in this process: trials are the unit of parallelism, and a second OpenMP thread on a
    busy machine costs far more than it gives."""
    import torch

    torch.set_num_threads(1)


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _prepare(index: int, group: GroupSpec, news: Queue[Any]) -> list[Prepared]:
    one_thread()
    return prepare(group, lambda share, text: news.put((index, -1, TRAINING * share, text)))


def _attack(index: int, cell: int, prepared: Prepared, share: float, news: Queue[Any]) -> Any:
    one_thread()
    part = (1 - TRAINING) * share
    done = attack(prepared, lambda s, text: news.put((index, cell, part * s, text)))
    news.put((index, cell, part, "attacking"))
    return done


def _listen(news: Queue[Any], report: Report) -> None:
    """Adds up the shares that a group's pieces have done."""
    done: dict[int, dict[int, float]] = defaultdict(dict)
    while (item := news.get()) is not None:
        group, piece, share, text = item
        done[group][piece] = share
        total = sum(done[group].values())
        report(group, min(total, 1.0), "done" if total > 0.9999 else text)
