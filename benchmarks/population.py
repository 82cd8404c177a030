"""Federations of a thousand and ten thousand clients: CPU time of a round, and peak memory.

Two curves. *Population*: 10 clients take part in each round, of 100, 1,000 and 10,000 (10 %, 1 %, .1 %). *Cohort*: all
of 100, 1,000 and 10,000 clients take part. Digits, an MLP of 100 units (7,510 numbers an upload), FedAvg with two local
steps on batches of 4; each client holds 8 samples of its own draw, which others may hold as well.

Every case has a process of its own, which first plays a small federation, so that libraries are loaded.

    set-up      CPU seconds to build the problem and the protocol
    round       median CPU milliseconds of a round, batches and all, without the first round
    peak        the most resident memory during the rounds beyond what there was before them, data included
    uploads     the uploads of one round; peak/uploads: how many copies of them the peak would be

`pairwise-masks` exchanges messages for every pair of clients: it is measured up to `--secure` clients, and with 64
neighbours a client up to `--sparse`.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import torch
from side_by_side import machine, note

from fedarena.core import plugin_file, registry
from fedarena.core.card import Card
from fedarena.core.options import option
from fedarena.core.rng import Rng
from fedarena.federation import rounds as federation
from fedarena.federation.compose import defense_cards, make_defense, parse
from fedarena.problem.problem import Problem, build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec

PLAIN = ("fedavg", "median", "krum", "nnm+trimmed-mean")
SECURE = "pairwise-masks"
NEIGHBOURS = 64
SPARSE = f"{SECURE}, {NEIGHBOURS} neighbours"
SIZES = (100, 1_000, 10_000)
SAMPLED = 10
SAMPLES, BATCH = 8, 4
LARGE, FEW = 1_000, 3
"""A federation whose rounds have more clients plays few of them."""
WARM = 10
"""Clients of the federation that loads the libraries."""


@dataclass(frozen=True)
class Options:
    """Options of `own-draws`."""

    samples: int = option(SAMPLES, "samples that each client draws", low=1)


def split(
    labels: npt.NDArray[np.int64], n_clients: int, rng: np.random.Generator, options: Options
) -> list[npt.NDArray[np.int64]]:
    """So many samples a client, drawn from all without replacement; clients may hold the same ones."""
    return [rng.choice(len(labels), options.samples, replace=False) for _ in range(n_clients)]


CARD = Card(name="own-draws", kind="partition", title="Each client draws of all samples", target=split, options=Options)


@dataclass(frozen=True)
class Case:
    """One federation."""

    curve: str
    defense: str
    population: int
    cohort: int


@dataclass(frozen=True)
class Row:
    """What was measured of it; times in CPU seconds, memory in bytes."""

    curve: str
    defense: str
    population: int
    cohort: int
    setup: float
    round: float
    peak: int
    uploads: int


def cases(sizes: tuple[int, ...], secure: int, sparse: int) -> list[Case]:
    """Both curves."""
    found = [Case("population", name, n, SAMPLED) for name in (*PLAIN, SECURE) for n in sizes]
    found += [Case("cohort", name, n, n) for name in PLAIN for n in sizes]
    for name, most in ((SECURE, secure), (SPARSE, sparse)):
        found += [Case("cohort", name, n, n) for n in sorted({*sizes, secure, sparse}) if n <= most]
    return found


def problem(population: int, cohort: int, rounds: int) -> Problem:
    """The federation's data, split and model."""
    schedule = Schedule(
        rounds=rounds, batch_size=BATCH, local_epochs=1, lr=0.1, participation=cohort / population, eval_every=0
    )
    spec = ProblemSpec(
        "digits", model="mlp", partition="own-draws", clients=population, schedule=schedule,
        model_options=registry.find("model", "mlp").parse({"widths": "100"}),
        partition_options=registry.find("partition", "own-draws").parse({}),
    )  # fmt: skip
    return build(spec, 0)


def measure(case: Case, rounds: int) -> Row:
    """Play the case in this process."""
    torch.set_num_threads(1)
    plugin_file.use([__file__])
    play(case.defense, problem(WARM, WARM, 2))
    began = time.process_time()
    built = problem(case.population, case.cohort, rounds)
    setup = time.process_time() - began
    before = renew_peak()
    making, after = play(case.defense, built)
    spent = [b - a for a, b in pairwise(after)]
    upload = sum(p.numel() * p.element_size() for p in built.init.values())
    return Row(
        **asdict(case), setup=setup + making, round=statistics.median(spent), peak=resident("VmHWM") - before,
        uploads=case.cohort * upload,
    )  # fmt: skip


def play(name: str, built: Problem) -> tuple[float, list[float]]:
    """CPU seconds to make the defense, and the process's CPU time after each round."""
    began = time.process_time()
    own = {SECURE: {"neighbours": str(NEIGHBOURS)}} if name == SPARSE else {}
    defense = make_defense(parse(defense_cards(name.partition(",")[0]), {}, own), built.task)
    making = time.process_time() - began
    after: list[float] = []
    federation.run(defense, built, Rng(0).child("federation"), progress=lambda _: after.append(time.process_time()))
    return making, after


def renew_peak() -> int:
    """Let go of free memory and let the kernel count the peak from now on; the resident bytes now."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return resident("VmRSS")


def resident(line: str) -> int:
    """VmRSS, the resident bytes of this process, or VmHWM, their peak."""
    with open("/proc/self/status") as file:
        return 1024 * next(int(text.split()[1]) for text in file if text.startswith(f"{line}:"))


def in_a_process(case: Case, rounds: int) -> Row:
    """Play the case in a process of its own."""
    played = rounds if case.cohort <= LARGE else min(rounds, FEW)
    command = [sys.executable, __file__, "--case", json.dumps(asdict(case)), "--rounds", str(played)]
    done = subprocess.run(command, env=os.environ | {"OMP_NUM_THREADS": "1"}, stdout=subprocess.PIPE, check=True)
    return Row(**json.loads(done.stdout))


def line(r: Row) -> str:
    """One line of the table."""
    mega = 1e6
    cells = (
        r.curve, r.defense, f"{r.cohort:,} of {r.population:,}", f"{r.setup:.2f}",
        f"{r.round * 1e3:,.1f}", f"{r.round / r.cohort * 1e3:.3f}", f"{r.peak / mega:,.1f}", f"{r.uploads / mega:,.1f}",
        f"{r.peak / r.uploads:.1f}",
    )  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Measure all cases, or one; print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--rounds", type=int, default=10, help="rounds of a federation, 2 or more; 3 at most if large")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="clients, separated by commas")
    parser.add_argument("--secure", type=int, default=300, help="the most clients of a secure sum")
    parser.add_argument("--sparse", type=int, default=1_000, help="the most clients of one among neighbours")
    parser.add_argument("--only", default="", help="cases whose curve and defense contain this text")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.case:
        print(json.dumps(asdict(measure(Case(**json.loads(given.case)), given.rounds))))
        return
    sizes = tuple(int(size) for size in given.sizes.split(","))
    chosen = [c for c in cases(sizes, given.secure, given.sparse) if given.only in f"{c.curve} {c.defense}"]
    if not given.json:
        print(", ".join(f"{k} {v}" for k, v in machine().items()) + "; CPU time, MB of 10^6 bytes\n")
        print("| curve | rule | clients | set-up s | round ms | ms a client | peak MB | uploads MB | peak/uploads |")
        print("|---|---|---|---|---|---|---|---|---|")
    rows = []
    for case in chosen:
        try:
            rows.append(in_a_process(case, given.rounds))
        except subprocess.CalledProcessError as error:
            note(f"{case}: ended with {error.returncode}, left out")
            continue
        if not given.json:
            print(line(rows[-1]), flush=True)
    if given.json:
        print(json.dumps({"machine": machine(), "rows": [asdict(r) for r in rows]}, indent=2))


if __name__ == "__main__":
    main()
