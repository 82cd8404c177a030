"""Where `gpu_parts.py` measures, what a number is, how a rate is measured and how far tensors are apart."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from fedarena.core.tensors import Tensors, find_device


@dataclass(frozen=True)
class Place:
    """Where work is done: a device, and how many threads the CPU has for it."""

    device: str
    threads: int = 1

    @property
    def name(self) -> str:
        """As it stands in the table."""
        return "GPU" if self.device == "cuda" else f"CPU, {self.threads} thread{'s' * (self.threads > 1)}"

    def enter(self) -> None:
        """Compute here from now on."""
        find_device(self.device)
        torch.set_num_threads(self.threads)

    def wait(self) -> None:
        """Until everything that was asked for is computed."""
        if self.device == "cuda":
            torch.cuda.synchronize()


@dataclass(frozen=True)
class Settings:
    """What the command line says.

    Attributes:
        device: cuda, or cpu for all parts in small.
        data: where the file of CIFAR-10 is; None: where the package looks for it.
    """

    device: str
    data: Path | None

    @property
    def small(self) -> bool:
        """Whether the parts are to run, rather than to measure."""
        return self.device == "cpu"

    @property
    def seconds(self) -> float:
        """How long a rate is measured."""
        return 0.1 if self.small else 2.0

    @property
    def places(self) -> tuple[Place, ...]:
        """The GPU first, then the CPU with one thread, as a worker of the harness has it, and with all."""
        cores = len(os.sched_getaffinity(0))
        if self.small:
            return (Place("cpu"),)
        return (Place("cuda"), Place("cpu"), *([Place("cpu", cores)] if cores > 1 else []))


@dataclass(frozen=True)
class Result:
    """One number.

    Attributes:
        what: the work. form: how it is done. where: the place. value, unit: the number. note: what else is to be known.
    """

    what: str
    form: str
    where: str
    value: float
    unit: str
    note: str = ""


Results = Iterator[Result]


def rate(run: Callable[[], Any], place: Place, seconds: float, warm: bool = True) -> float:
    """How often a second it runs."""
    if warm:
        run()
    place.wait()
    began, count = time.perf_counter(), 0
    while not count or time.perf_counter() - began < seconds:
        run()
        place.wait()
        count += 1
    return count / (time.perf_counter() - began)


def apart(a: Tensors, b: Tensors) -> float:
    """The largest difference of two entries, over the largest entry of their tensor in `b`."""
    pairs = [(a[name].detach().cpu().double(), t.detach().cpu().double()) for name, t in b.items()]
    return max(float((x - y).abs().max() / y.abs().max().clamp_min(1e-300)) for x, y in pairs)
