"""Trials a minute of `bench suite run` with two workers and with one, from an empty folder, start-up included.

    python benchmarks/suite_speed.py                      the whole smoke suite, three times each
    python benchmarks/suite_speed.py --suite digits --seeds 0,1 --repetitions 1

Wall-clock time, so only an idle machine with a core for each worker says anything; one worker and two take turns. Exits
with 1 where two give less than 1.7 times the trials a minute of one, or where their records differ.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from fedarena.records.schema import VOLATILE
from fedarena.runs.executors import cores

BAR = 1.7
COMMAND = "import sys; from fedarena.cli import main; sys.exit(main(sys.argv[1:]))"


def run(suite: str, seeds: str, jobs: int) -> tuple[float, int, dict[str, Any]]:
    """(wall seconds, trials, records without what may differ) of one run."""
    with tempfile.TemporaryDirectory() as folder:
        args = ["suite", "run", suite, "--seeds", seeds, "--jobs", str(jobs), "--out", folder, "--quiet", "--json"]
        began = time.perf_counter()
        done = subprocess.run([sys.executable, "-c", COMMAND, *args], capture_output=True, text=True)
        seconds = time.perf_counter() - began
        if done.returncode:
            sys.exit(f"bench {' '.join(args)} ended with {done.returncode}\n{done.stdout}{done.stderr}")
        records = {p.name: stable(json.loads(p.read_text())) for p in (Path(folder) / "records").glob("*.json")}
        return seconds, json.loads(done.stdout)["measured"], records


def stable(record: dict[str, Any]) -> dict[str, Any]:
    """A record without timings and environment."""
    for path in VOLATILE:
        *parents, last = path.split(".")
        node = record
        for name in parents:
            node = node[name]
        node.pop(last, None)
    return record


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", default="smoke", help="a suite's name or file (default: smoke)")
    parser.add_argument("--seeds", default="0,1,2", help="its seeds (default: 0,1,2)")
    parser.add_argument("--repetitions", type=int, default=3, help="runs of each (default: 3)")
    parser.add_argument("--json", action="store_true", help="machine-readable output")
    args = parser.parse_args()
    rates: dict[int, list[float]] = {1: [], 2: []}
    records: list[dict[str, Any]] = []
    load = os.getloadavg()[0]
    trials = 0
    for _ in range(args.repetitions):
        for jobs in rates:
            seconds, trials, found = run(args.suite, args.seeds, jobs)
            rates[jobs].append(60 * trials / seconds)
            records.append(found)
    median = {jobs: statistics.median(found) for jobs, found in rates.items()}
    ratio = statistics.median(two / one for one, two in zip(rates[1], rates[2], strict=True))
    same = all(found == records[0] for found in records)
    facts = {
        "suite": args.suite,
        "seeds": args.seeds,
        "trials": trials,
        "cores": cores(),
        "load_before": round(load, 2),
        "trials_per_minute": {jobs: round(value, 1) for jobs, value in median.items()},
        "ratio": round(ratio, 3),
        "bar": BAR,
        "records_equal": same,
    }
    if args.json:
        print(json.dumps(facts, indent=2))
    else:
        print(f"{args.suite}, seeds {args.seeds}: {trials} trials; {cores()} cores, load before {load:.1f}")
        print("| workers | trials a minute | runs |\n|---|---|---|")
        for jobs, found in rates.items():
            print(f"| {jobs} | {median[jobs]:.1f} | {', '.join(f'{rate:.1f}' for rate in found)} |")
        print(f"two over one: x{ratio:.2f} (bar: {BAR}); records {'equal' if same else 'DIFFER'}")
    return 0 if ratio >= BAR and same else 1


if __name__ == "__main__":
    sys.exit(main())
