"""Federations of a thousand and ten thousand clients: CPU time of a round, and peak memory.

Two curves. *Population*: 10 clients take part in each round, of 100, 1,000 and 10,000 (10 %, 1 %, .1 %). *Cohort*: all
of 100, 1,000 and 10,000 clients take part. Digits, an MLP of 100 units (7,510 numbers an upload), FedAvg with two local
steps on batches of 4; each client holds 8 samples of its own draw, which others may hold as well.

`--corrupted 379,1979` measures the two-stage paper's federations of 20 honest workers and so many corrupted ones (95,
99 %) in place of the curves: Fashion-MNIST, MLP, batch 16, both stages, ε = 2, labels flipped (each corrupted worker
trains), or Gaussian uploads (none does). There the attacker's pool of samples, which repeats the training set as often
as the paper resamples it, counts in the peak. Needs the data set.

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
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from side_by_side import machine, note

from fedarena.contracts.defense import Defense
from fedarena.core import plugin_file, registry
from fedarena.core.card import Card
from fedarena.core.options import option
from fedarena.core.rng import Rng
from fedarena.federation import rounds as federation
from fedarena.federation.adversary import Adversary, knowledge_of
from fedarena.federation.compose import auxiliary, defense_cards, make_defense, make_poisoning, parse
from fedarena.federation.spec import MethodSpec
from fedarena.problem.problem import Problem, build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.two_stage.common import Experiment, group

PLAIN = ("fedavg", "median", "krum", "nnm+trimmed-mean")
SECURE = "pairwise-masks"
NEIGHBOURS = 64
HONEST = 20
"""Workers of the two-stage paper that follow the protocol."""
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


def corrupted_cases(numbers: tuple[int, ...]) -> list[Case]:
    """The two-stage paper's federations; the curve names the attack."""
    return [Case(attack, "two-stage", HONEST + n, HONEST + n) for attack in ("label-flip", "gaussian") for n in numbers]


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


def measure(case: Case, rounds: int, data: Path | None) -> Row:
    """Play the case in this process."""
    torch.set_num_threads(1)
    plugin_file.use([__file__])
    play(defense_of("fedavg", warm := problem(WARM, WARM, 2)), warm)
    began = time.process_time()
    if case.defense == "two-stage":
        defense, built, attack = two_stage(case, rounds, data)
    else:
        built = problem(case.population, case.cohort, rounds)
        defense, attack = defense_of(case.defense, built), None
    setup = time.process_time() - began
    if attack is None:
        play(defense_of(case.defense, warm), warm)
    before = renew_peak()
    after = play(defense, built, attack)
    upload = sum(p.numel() * p.element_size() for p in built.init.values())
    return Row(
        **asdict(case), setup=setup, round=statistics.median(b - a for a, b in pairwise(after)),
        peak=resident("VmHWM") - before, uploads=case.cohort * upload,
    )  # fmt: skip


def defense_of(name: str, built: Problem) -> Defense:
    """The protocol of a case of the curves."""
    own = {SECURE: {"neighbours": str(NEIGHBOURS)}} if name == SPARSE else {}
    return make_defense(parse(defense_cards(name.partition(",")[0]), {}, own), built.task)


def two_stage(case: Case, rounds: int, data: Path | None) -> tuple[Defense, Problem, MethodSpec]:
    """A federation of the two-stage paper, and its attack."""
    share = (case.population - HONEST + 0.5) / (case.population + 0.5)  # of which `group` makes that number again
    experiment = Experiment(
        data="fashion-mnist", title="", paper=None, byzantine=share, attack=case.curve, rounds=rounds
    )
    spec = group(experiment, Machine(data), 0)
    assert spec.problem.clients == case.population
    assert spec.attack is not None
    quiet = replace(spec.problem, schedule=replace(spec.problem.schedule, eval_every=0))
    built = build(quiet, 0, data, auxiliary=auxiliary(spec.defense))
    return make_defense(spec.defense, built.task), built, spec.attack


def play(defense: Defense, built: Problem, attack: MethodSpec | None = None) -> list[float]:
    """The process's CPU time after each round."""
    after: list[float] = []
    adversary = None
    if attack is not None:
        made = make_poisoning(attack, knowledge_of(built, defense, "own"))
        adversary = Adversary(made, frozenset(built.corrupted), Rng(1))
    federation.run(
        defense, built, Rng(0).child("federation"), adversary=adversary,
        progress=lambda _: after.append(time.process_time()),
    )  # fmt: skip
    return after


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


def in_a_process(case: Case, rounds: int, data: Path | None) -> Row:
    """Play the case in a process of its own."""
    played = rounds if case.cohort <= LARGE else min(rounds, FEW)
    command = [sys.executable, __file__, "--case", json.dumps(asdict(case)), "--rounds", str(played)]
    command += [] if data is None else ["--data", str(data)]
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
    parser.add_argument("--corrupted", default="", help="corrupted workers of two-stage, in place of the curves")
    parser.add_argument("--data", type=Path, help="folder of the data sets")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.case:
        print(json.dumps(asdict(measure(Case(**json.loads(given.case)), given.rounds, given.data))))
        return
    if given.corrupted:
        every = corrupted_cases(tuple(map(int, given.corrupted.split(","))))
    else:
        every = cases(tuple(map(int, given.sizes.split(","))), given.secure, given.sparse)
    chosen = [case for case in every if given.only in f"{case.curve} {case.defense}"]
    if not given.json:
        print(", ".join(f"{k} {v}" for k, v in machine().items()) + "; CPU time, MB of 10^6 bytes\n")
        print("| curve | rule | clients | set-up s | round ms | ms a client | peak MB | uploads MB | peak/uploads |")
        print("|---|---|---|---|---|---|---|---|---|")
    rows = []
    for case in chosen:
        try:
            rows.append(in_a_process(case, given.rounds, given.data))
        except subprocess.CalledProcessError as error:
            note(f"{case}: ended with {error.returncode}, left out")
            continue
        if not given.json:
            print(line(rows[-1]), flush=True)
    if given.json:
        print(json.dumps({"machine": machine(), "rows": [asdict(r) for r in rows]}, indent=2))


if __name__ == "__main__":
    main()
