"""A suite that runs in seconds, and ways to run it: for tests of suites, engines and what is left in folders."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fedarena.core.files import canonical
from fedarena.records.schema import VOLATILE, Record
from fedarena.runs.executors import Executor, executor
from fedarena.runs.suite.plan import Plan
from fedarena.runs.suite.run import Outcome, plan_of, run_suite
from fedarena.runs.suite.suite import Suite, load

READ = """
[problems.read]
dataset = "digits"
model = "mlp"
clients = 3
model_options = { widths = [8] }
training = { rounds = 4, batch_size = 1, lr = 0.1 }
utility = false
"""

POISON = """
[problems.poison]
dataset = "digits"
model = "mlp"
clients = 5
corrupted = 1
partition = "sorted"
model_options = { widths = [8] }
training = { rounds = 15, batch_size = 32, lr = 0.5 }
"""

TINY = f"""
title = "Tiny"
about = "Small enough for tests."
seeds = [0, 1]
{READ}{POISON}
[methods.dlg]
victims = 1
restarts = 1
iterations = 4

[[matrix]]
problem = "read"
defenses = ["fedavg", "dbcl"]
attacks = ["last-layer-label", "dlg", "gradient-estimate"]
parties = ["server", "client"]

[[matrix]]
problem = "poison"
defenses = ["fedavg", "dbcl"]
attacks = ["sign-flip", "pixel-trigger"]
"""
"""An inference and a poisoning problem; three attacks that share a run, and one whose trigger is tried on honest
models too."""

BARE = TINY.replace('"dlg", ', "").replace("[methods.dlg]\nvictims = 1\nrestarts = 1\niterations = 4\n", "")
"""Without pictures, and without what processes load for them, which takes as long as everything else."""

PROPERTY = f"""
title = "An experiment that says what clients work on"
seeds = [0]
{READ}
[methods.property-inference]
rounds = 4
round_batches = 2

[[matrix]]
problem = "read"
defenses = ["fedavg", "dbcl"]
attacks = ["property-inference", "last-layer-label"]
parties = ["server"]
forms = ["paper"]
"""

Files = dict[str, str]


def write_suite(folder: Path, text: str = TINY, name: str = "tiny") -> Path:
    """A suite's file."""
    path = folder / f"{name}.toml"
    path.write_text(text)
    return path


def measure(
    text: str,
    where: Path,
    jobs: int = 1,
    engine: str = "local",
    fresh: bool = False,
    seeds: Sequence[int] | None = None,
    report_progress: Callable[..., object] = lambda *news: None,
    warn: Callable[[str], None] = lambda note: None,
) -> Outcome:
    """Run a suite into where/out, in this process."""
    suite, plan = planned(text, where, seeds)
    with executor(engine, jobs) as place:
        return run_suite(suite, plan, where / "out", None, lambda: place, fresh, report_progress, warn)


def planned(text: str, where: Path, seeds: Sequence[int] | None = None) -> tuple[Suite, Plan]:
    """A suite, and its plan for where/out."""
    suite = load(str(write_suite(where, text)))
    return suite, plan_of(suite, seeds or suite.seeds, where / "out", None)


def unused() -> Executor:
    """An executor that must not be asked for."""
    raise AssertionError("there was nothing to run")


def records_in(folder: Path) -> dict[str, Record]:
    """Every record of a folder, each of which must be whole, by file name."""
    return {path.name: json.loads(path.read_text()) for path in sorted((folder / "records").glob("*.json"))}


def stable(record: Mapping[str, Any]) -> str:
    """A record without what may differ between two runs."""
    kept = copy.deepcopy(dict(record))
    for path in VOLATILE:
        *parents, last = path.split(".")
        node = kept
        for name in parents:
            node = node[name]
        node.pop(last, None)
    return canonical(kept)


def contents(folder: Path) -> Files:
    """What a folder's records say, by file name, without what may differ between two runs."""
    return {name: stable(record) for name, record in records_in(folder).items()}


def without_pictures(tiny: Path) -> Files:
    """What `BARE` gives: the tiny suite's records but those of pictures."""
    shown = {name for name, record in records_in(tiny).items() if record["attack"] == "dlg"}
    return {name: record for name, record in contents(tiny).items() if name not in shown}


def start(
    *args: str | Path, cwd: Path, path: Path | None = None, env: Mapping[str, str] | None = None, **popen: Any
) -> subprocess.Popen[str]:
    """The command `bench`, in a session of its own so that a signal can be sent to it alone or to all it started.

    As from a terminal: shells start what goes to the background with SIGINT ignored, which children inherit.
    """
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "from fedarena.cli import main; sys.exit(main())"
    )
    search = [str(path)] if path else []
    search += [os.environ["PYTHONPATH"]] if os.environ.get("PYTHONPATH") else []
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, args)],
        cwd=cwd,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(search), **(env or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **popen,
    )
