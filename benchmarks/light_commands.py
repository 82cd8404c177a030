"""CPU seconds (user + system) of the commands that only look around, each in a fresh interpreter.

    python benchmarks/light_commands.py

The limit for each is 0.4 s; the smallest of five is printed, since other processes only ever add to it.
"""

from __future__ import annotations

import resource
import subprocess
import sys

LINES = ("--help", "list", "list --json", "show dbcl", "show training")


def cpu_seconds(line: str) -> float:
    """User and system time of one run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    code = "import sys; from fedarena.cli import main; sys.exit(main(sys.argv[1:]))"
    subprocess.run([sys.executable, "-c", code, *line.split()], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    for line in LINES:
        print(f"bench {line:<14} {min(cpu_seconds(line) for _ in range(5)):.3f} s")
