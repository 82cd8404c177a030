"""Timing shared by the benchmarks: candidates alternate in one process, process CPU time, one thread, medians."""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch

Candidates = Mapping[str, Callable[[], Any]]


@dataclass(frozen=True)
class Row:
    """One comparison.

    Attributes:
        what: the work. ours, theirs: what is compared.
        ours_ms, theirs_ms: median CPU milliseconds.
        ratio: median over repetitions of the ratio that the bar is about.
        bar: the bar, as text. met: whether it is met; None when there is no bar.
    """

    what: str
    ours: str
    theirs: str
    ours_ms: float
    theirs_ms: float
    ratio: float
    bar: str
    met: bool | None


def alternate(candidates: Candidates, repetitions: int) -> dict[str, list[float]]:
    """CPU seconds of each candidate in each repetition; all take their turn in every repetition."""
    for run in candidates.values():
        run()
    spent: dict[str, list[float]] = {name: [] for name in candidates}
    gc.collect()
    for _ in range(repetitions):
        for name, run in candidates.items():
            began = time.process_time()
            run()
            spent[name].append(time.process_time() - began)
    return spent


def faster(
    what: str, ours: str, theirs: str, spent: Mapping[str, Sequence[float]], at_least: float | None = None
) -> Row:
    """How many times faster ours is."""
    ratio = statistics.median(t / o for o, t in zip(spent[ours], spent[theirs], strict=True))
    bar, met = (f">= {at_least}", ratio >= at_least) if at_least is not None else ("", None)
    return Row(what, ours, theirs, _ms(spent[ours]), _ms(spent[theirs]), ratio, bar, met)


def costlier(
    what: str, ours: str, theirs: str, spent: Mapping[str, Sequence[float]], at_most: float | None = None
) -> Row:
    """How many times more ours costs, with a bar or without one."""
    ratio = statistics.median(o / t for o, t in zip(spent[ours], spent[theirs], strict=True))
    bar, met = ("", None) if at_most is None else (f"<= {at_most}", ratio <= at_most)
    return Row(what, ours, theirs, _ms(spent[ours]), _ms(spent[theirs]), ratio, bar, met)


def main(doc: str | None, measure: Callable[[int], list[Row]], repetitions: int = 15) -> None:
    """Parse the command line, measure on one thread, print; exits with 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--repetitions", type=int, default=repetitions, help="turns of each candidate")
    given = parser.parse_args()
    torch.set_num_threads(1)
    rows = measure(given.repetitions)
    if given.json:
        print(json.dumps({"machine": machine(), "rows": [asdict(r) for r in rows]}, indent=2))
    else:
        _table(rows)
    sys.exit(1 if any(r.met is False for r in rows) else 0)


def machine() -> dict[str, str]:
    """What the numbers were measured on."""
    return {
        "date": time.strftime("%Y-%m-%d"),
        "cpu": _cpu(),
        "cores": str(os.cpu_count()),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "load": f"{os.getloadavg()[0]:.1f}",
    }


def note(line: str) -> None:
    """A remark that is no result: to stderr."""
    print(line, file=sys.stderr)


def _ms(seconds: Sequence[float]) -> float:
    return statistics.median(seconds) * 1e3


def _table(rows: Sequence[Row]) -> None:
    print(", ".join(f"{k} {v}" for k, v in machine().items()) + "; CPU ms, medians\n")
    print("| work | ours | ms | against | ms | ratio | bar | |\n|---|---|---|---|---|---|---|---|")
    for r in rows:
        met = {True: "met", False: "MISSED", None: ""}[r.met]
        cells = (r.what, r.ours, f"{r.ours_ms:.2f}", r.theirs, f"{r.theirs_ms:.2f}", f"x{r.ratio:.2f}", r.bar, met)
        print("| " + " | ".join(cells) + " |")


def _cpu() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
