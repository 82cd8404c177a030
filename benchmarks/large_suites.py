"""What a suite of ten thousand trials costs beside its trials: its plan, going on where it stopped, its board and page.

    python benchmarks/large_suites.py                     67 seeds, 10,519 trials
    python benchmarks/large_suites.py --seeds 5 --json

One seed is measured. Records of the others are copies of it with their own seed and keys, since it does not matter here
what they say. Each step is a command, or a function of Python, in a fresh process on one thread, with its start and its
imports; what counts is that process's CPU time. Exits with 1 where a bar is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tabulate import tabulate

from fedarena.records.store import sum_of
from fedarena.records.trial_key import key_of, trial_key

SUITE = """
title = "Large"
about = "Small trainings, and as many seeds as are asked for."
seeds = {seeds}

[problems.poison]
dataset = "digits"
model = "mlp"
clients = 12
corrupted = 3
partition = "few"
partition_options = {{ samples = 16 }}
model_options = {{ widths = [16] }}
training = {{ rounds = 40, batch_size = 16, lr = 0.4 }}

[problems.upload]
dataset = "digits"
model = "mlp"
clients = 4
model_options = {{ widths = [32] }}
training = {{ rounds = 8, batch_size = 1, lr = 0.2 }}
utility = false

[[matrix]]
problem = "poison"
defenses = [
    "fedavg", "krum", "median", "trimmed-mean", "geometric-median", "nnm+krum", "nnm+median", "centered-clipping",
    "multi-krum", "bulyan",
]
attacks = ["sign-flip", "alie", "ipm", "mimic", "label-flip"]
knows = ["own", "omniscient"]

[[matrix]]
problem = "upload"
defenses = ["fedavg", "dbcl", "qsgd", "pruning", "gradient-noise"]
attacks = ["analytic", "last-layer-label", "joint-membership", "gradient-estimate"]
parties = ["server", "client"]
"""

COMMAND = "import sys; from fedarena.cli import main; sys.exit(main(sys.argv[1:]))"
LOAD = "import sys; import fedarena as fa; fa.load_board(sys.argv[1])"


@dataclass(frozen=True)
class Step:
    """What one step took, in `unit`, and the most that it may take."""

    what: str
    amount: float
    unit: str
    at_most: float


def spent(code: str, *words: str) -> float:
    """CPU seconds of a fresh process and of those that it started. Exits where it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    if done.returncode:
        sys.exit(f"{' '.join(words)} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def copy_records(folder: Path, seeds: Sequence[int]) -> None:
    """Give every seed the records of the first one."""
    for path in [*folder.glob("*.json")]:
        record: dict[str, Any] = json.loads(path.read_text())
        for seed in seeds[1:]:
            record["seed"] = seed
            record["trial"]["key"] = trial_key(record)  # type: ignore[arg-type]
            record["key"] = key_of(record)  # type: ignore[arg-type]
            (folder / f"{record['key']}.json").write_text(json.dumps({**record, "sum": sum_of(record)}, indent=2))


def measure(seeds: Sequence[int]) -> tuple[int, list[Step]]:
    """The number of trials, and what each step took."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        suite, full, page = str(folder / "large.toml"), folder / "full", folder / "page.html"
        Path(suite).write_text(SUITE.format(seeds=list(seeds)))
        plan = spent(COMMAND, "suite", "plan", suite, "--quiet", "--out", str(folder / "empty"))
        print("measuring one seed", file=sys.stderr)
        spent(COMMAND, "suite", "run", suite, "--seeds", "0", "--jobs", "1", "--quiet", "--out", str(full))
        copy_records(full / "records", seeds)
        spent(COMMAND, "suite", "run", suite, "--quiet", "--out", str(full))  # writes the plan of all seeds
        again = spent(COMMAND, "suite", "run", suite, "--quiet", "--out", str(full))
        load = spent(LOAD, str(full))
        spent(COMMAND, "leaderboard", str(full), "--out", str(page))
        trials = len(json.loads((full / "plan.json").read_text())["trials"])
        return trials, [
            Step("suite plan, nothing is there", plan, "CPU s", 10.0),
            Step("suite run, everything is there", again, "CPU s", 5.0),
            Step("load_board", load, "CPU s", 5.0),
            Step("the page of the board", page.stat().st_size / 1e6, "MB", 5.0),
        ]


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=67, help="how many (default: 67)")
    parser.add_argument("--json", action="store_true", help="machine-readable output")
    given = parser.parse_args()
    trials, steps = measure(range(given.seeds))
    if given.json:
        print(json.dumps({"trials": trials, "steps": [asdict(step) for step in steps]}, indent=1))
    else:
        print(f"{trials:,} trials")
        rows = [(s.what, f"{s.amount:.2f} {s.unit}", f"<= {s.at_most:g} {s.unit}") for s in steps]
        print(tabulate(rows, headers=("step", "took", "bar"), tablefmt="github"))
    return int(any(step.amount > step.at_most for step in steps))


if __name__ == "__main__":
    sys.exit(main())
