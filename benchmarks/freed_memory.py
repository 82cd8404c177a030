"""Six rounds of a large model with the memory that tensors free kept, and with glibc's own habits.

An MLP of 1,000-1,000 units (1.1 million parameters) on digits: 20 nodes without a server that clip differences, and a
server that takes the median of 25 clients. Each run has a process of its own, and the last five rounds count.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

from side_by_side import Row, faster, main

from fedarena.core import registry
from fedarena.core.rng import Rng
from fedarena.federation import rounds
from fedarena.federation.compose import defense_cards, make_defense, parse
from fedarena.problem.problem import build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec

ROUNDS = 6
CASES = (("d-sgd", 20, {"d-sgd": {"graph": "complete", "clip": "1"}}), ("fedavg+median", 25, {}))
THEIRS = {"GLIBC_TUNABLES": "glibc.malloc.check=0"}
"""Says nothing about freed memory; that it is there leaves the choice to glibc."""


def measure(repetitions: int) -> list[Row]:
    """One row a case."""
    rows = []
    for which, (name, clients, _) in enumerate(CASES):
        spent: dict[str, list[float]] = {"kept": [], "glibc": []}
        for _ in range(repetitions):
            for how, environment in (("kept", {}), ("glibc", THEIRS)):
                spent[how].append(seconds(which, environment))
        rows.append(faster(f"{name}, {clients} clients, mlp 1000,1000", "kept", "glibc", spent))
    return rows


def seconds(which: int, environment: dict[str, str]) -> float:
    """CPU seconds of the last rounds in a process of their own."""
    command = [sys.executable, __file__, "--case", str(which)]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=True)
    return float(done.stdout)


def train(which: int) -> float:
    """Train, and return the CPU seconds of all rounds but the first."""
    name, clients, options = CASES[which]
    schedule = Schedule(rounds=ROUNDS, batch_size=14, lr=0.05, eval_every=0)
    widths = registry.find("model", "mlp").parse({"widths": "1000,1000"})
    spec = ProblemSpec("digits", model="mlp", partition="iid", clients=clients, model_options=widths, schedule=schedule)
    problem = build(spec, 0)
    defense = make_defense(parse(defense_cards(name), {}, options), problem.task)
    after: list[float] = []
    rounds.run(defense, problem, Rng(0).child("federation"), progress=lambda _: after.append(time.process_time()))
    return after[-1] - after[0]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--case"]:
        print(train(int(sys.argv[2])))
    else:
        main(__doc__, measure, repetitions=5)
