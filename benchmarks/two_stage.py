"""Whole federations of the two-stage paper's size: Fashion-MNIST, MLP, batch 16, 1,500 rounds, both stages, ε = 2.

20 honest workers alone, and 50 of whom 30 count as corrupted (they follow the protocol here: an attack's own cost is
its own). CPU seconds of everything from the first round to the last evaluation. Needs the data set.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import torch
from side_by_side import machine

from fedarena.core.registry import find
from fedarena.core.rng import Rng
from fedarena.federation import rounds as federation
from fedarena.problem.problem import build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec

CASES = ((20, 0, 30.0), (50, 30, 60.0))
"""Clients, corrupted ones among them, and the seconds allowed."""


def run(clients: int, corrupted: int, rounds: int, data: Path | None) -> tuple[float, float, float]:
    """CPU seconds, accuracy, and the share of uploads that stage one rejected."""
    model = find("model", "mlp-two-stage").parse({"mean": "0.286", "std": "0.353"})
    card = find("defense", "two-stage")
    options, kind = card.parse({}), card.load()
    schedule = Schedule(rounds=rounds, batch_size=16, lr=0.2)
    spec = ProblemSpec(
        "fashion-mnist", model="mlp-two-stage", partition="iid", clients=clients, model_options=model,
        schedule=schedule, corrupted=corrupted, corrupted_data="resampled", assumed_corrupted=corrupted,
    )  # fmt: skip
    problem = build(spec, 1, data, auxiliary=kind.holds(options))
    defense = kind(options, problem.task)
    began = time.process_time()
    done = federation.run(defense, problem, Rng(1).child("federation"))
    seconds = time.process_time() - began
    rejected = [value for v in done.verdicts for value in v.values["first_stage"]]
    return seconds, done.accuracy, sum(rejected) / len(rejected)


def main() -> None:
    """Run the cases, print a table; exits with 1 when one takes too long."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of the data sets")
    parser.add_argument("--rounds", type=int, default=1500, help="rounds; the bar is for 1500")
    given = parser.parse_args()
    torch.set_num_threads(1)
    print(", ".join(f"{k} {v}" for k, v in machine().items()) + "; CPU seconds\n")
    print("| clients | s | bar | | accuracy | rejected by stage one |\n|---|---|---|---|---|---|")
    met = True
    for clients, corrupted, bar in CASES:
        seconds, accuracy, rejected = run(clients, corrupted, given.rounds, given.data)
        good = seconds <= bar
        met = met and good
        word = "met" if good else "MISSED"
        print(f"| {clients} | {seconds:.1f} | <= {bar:g} | {word} | {accuracy:.4f} | {rejected:.4f} |", flush=True)
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
