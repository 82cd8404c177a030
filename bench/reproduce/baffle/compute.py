"""BAFFLE, Section 4.4: a client's computation with K directions, against one gradient by backpropagation.

Paper: a backward pass is "about as expensive as two normal forward passes and five single-precision accelerated forward
passes", so that BAFFLE takes "approximately K/5 times the computation expense of BP-based FL". Here the K + 1 forward
passes of one client at the batch level, in this project's fast form and as a plain loop, take their turn with one
gradient (a forward and a backward pass) in one process. `*_over_K` is the ratio of the median CPU times, divided by K.
Drawing the K directions is part of a client's work and is also timed by itself.
Operations are counted by `torch.utils.flop_counter`: multiplications and additions of convolutions and dense layers."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from fedarena.core.tensors import Tensors, shaped
from fedarena.defenses.baffle import forward_passes as forwards
from fedarena.defenses.baffle.directions import directions
from fedarena.problem.task import Batch, Task
from fedarena.reproduce.baffle.table4 import round_of
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.progress import Progress
from fedarena.reproduce.published import Published
from fedarena.reproduce.table import Row, Table, measured_by_name

SIGMA, REPETITIONS = 1e-4, 7
SETTING = (
    "CPU time and operations of a client's batch of 32 random images: K + 1 forward passes against one gradient by "
    f"backpropagation, medians of {REPETITIONS} turns in one process, on one thread"
)
PAPER = 0.2
"""K/5, divided by K."""
MEASURED = (
    *("backprop_ms", "forwards_ms", "plain_ms", "drawing_ms"),
    *("seconds_over_K", "plain_seconds_over_K", "operations_over_K"),
)


@dataclass(frozen=True)
class Work:
    """A network, the shape of its images, and K."""

    model: str
    channels: int
    k: int

    @property
    def name(self) -> str:
        """The name by which `--only` selects it."""
        return f"{self.model}, {self.channels}x32x32, K = {self.k}"


WORK = [
    Work("LeNet", 1, 20),
    Work("LeNet", 1, 100),
    Work("LeNet", 3, 100),
    Work("WRN-10-2", 1, 20),
    Work("WRN-10-2", 3, 20),
]


def measure(work: Work, machine: Machine, seed: int, progress: Progress) -> list[Row]:
    """The row of one network."""
    task, params, batch = round_of(work.model, seed, (work.channels, 32, 32))
    backprop, fast, plain, draw = candidates(task, params, batch, work.k, seed)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        spent = _alternate((backprop, fast, plain, draw), progress)
    finally:
        torch.set_num_threads(threads)
    backward, forward, loop, drawing = (statistics.median(seconds) for seconds in spent)
    return [
        {
            "model": work.model,
            "channels": work.channels,
            "K": work.k,
            "parameters": sum(p.numel() for p in params.values()),
            "backprop_ms": 1000 * backward,
            "forwards_ms": 1000 * forward,
            "plain_ms": 1000 * loop,
            "drawing_ms": 1000 * drawing,
            "seconds_over_K": forward / backward / work.k,
            "plain_seconds_over_K": loop / backward / work.k,
            "operations_over_K": operations(fast) / operations(backprop) / work.k,
        }
    ]


Candidate = Callable[[], Any]


def candidates(
    task: Task, params: Tensors, batch: Batch, k: int, seed: int
) -> tuple[Candidate, Candidate, Candidate, Candidate]:
    """One gradient; K differences in the fast form, which are a tensor [1, K]; a plain loop [K]; K directions alone."""
    x, y = batch.images()
    n = sum(p.numel() for p in params.values())
    how = forwards.Differencing(SIGMA, "forward", torch.float32)

    def backprop() -> Any:
        leaves = {name: p.detach().requires_grad_() for name, p in params.items()}
        return torch.autograd.grad(task.loss(leaves, x, y), list(leaves.values()))

    def fast() -> Any:
        return forwards.differences(task, params, [batch], directions(seed, n), k, how)

    @torch.no_grad()
    def plain() -> Any:
        here = task.loss(params, x, y)
        found = []
        for z in islice(directions(seed, n), k):
            delta = shaped(SIGMA * z, params)
            found.append(task.loss({name: p + delta[name] for name, p in params.items()}, x, y) - here)
        return torch.stack(found)

    def draw() -> Any:
        return sum(1 for _ in islice(directions(seed, n), k))

    return backprop, fast, plain, draw


def operations(run: Candidate) -> int:
    """The operations of a run."""
    with FlopCounterMode(display=False) as counter:
        run()
    return int(counter.get_total_flops())


def _alternate(runs: tuple[Candidate, ...], progress: Progress) -> list[list[float]]:
    """CPU seconds of each candidate; all take their turn in every repetition, after one that is not counted."""
    spent: list[list[float]] = [[] for _ in runs]
    for repetition in range(-1, REPETITIONS):
        for run, seconds in zip(runs, spent, strict=True):
            began = time.process_time()
            run()
            if repetition >= 0:
                seconds.append(time.process_time() - began)
        progress((repetition + 1) / REPETITIONS, "timing")
    return spent


def published(work: Work) -> tuple[Published, ...]:
    """The claim's number, for time and for operations."""
    return (
        Published(
            piece=work.name, paper=PAPER, column="seconds_over_K", share=False, better="lower", derived="K/5, over K"
        ),
        Published(
            piece=work.name,
            paper=PAPER,
            column="operations_over_K",
            share=False,
            better="lower",
            derived="K/5, over K",
            apart="the paper's 5 is the speed of accelerated forward passes, which saves no operation",
        ),
    )


BY_NAME = {work.name: work for work in WORK}
TABLE = Table(
    setting=SETTING,
    pieces=tuple(BY_NAME),
    rows=measured_by_name(BY_NAME, measure),
    measured=MEASURED,
    published=tuple(one for work in WORK for one in published(work)),
    cpu_only="it compares CPU times of one thread",
)
