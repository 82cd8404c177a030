"""A suite is killed as often as wanted, in every way and at random moments, and goes on from what each kill left.

FEDARENA_KILLS says how often each engine is killed. FEDARENA_KILLS_SEED, which a failure prints, draws the same kills.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from helpers.forked_bench import Start, Starter
from helpers.killed_runs import assert_whole, count, make_old, unfinished
from helpers.kills import INSIDE, OF_WORKERS, SIGNALS, Fault, Kill, Run, draw
from helpers.suite import BARE, READ, TINY, contents, measure, write_suite

from fedarena.runs.left_semaphores import FOLDER, OLD, remove_left_semaphores

KILLS = int(os.environ.get("FEDARENA_KILLS", "100"))
SEED = os.environ.get("FEDARENA_KILLS_SEED") or str(random.randrange(10**6))
SORTS = ("lost", "half-written", "left over", "hang", "output", "other records")
LOADED = ("fedarena", "torch", "sklearn", "scipy", "pandas", "rich", "joblib")
PLUGIN = """import fedarena as fa


@fa.privacy_attack("mine", goal="labels")
def labels(seen, view):
    return seen.target[seen.output_bias].argsort()[: seen.images]
"""
FOREIGN = f"""
title = "An attack of another package"
seeds = [0, 1, 2, 3]
{READ}
[[matrix]]
problem = "read"
defenses = ["fedavg", "dbcl"]
attacks = ["mine", "last-layer-label"]
parties = ["server"]
"""


@dataclass(frozen=True)
class Engine:
    """How the suite is run.

    Attributes:
        words: of the command. text: the suite. ways: to kill it. start_up: about the seconds until its first record.
    """

    words: tuple[str, ...]
    text: str
    ways: tuple[str, ...]
    start_up: float


PLUGGED = ("--plugin", "mine.py", "--secret", "0123456789abcdef" * 2)
ENGINES = {
    "one process": Engine(("--jobs", "1"), TINY, SIGNALS + INSIDE, 2.5),
    "two workers": Engine(("--jobs", "2"), BARE, SIGNALS + INSIDE + OF_WORKERS * 2, 8),
    "three workers": Engine(("--jobs", "3"), BARE, SIGNALS + INSIDE + OF_WORKERS * 2, 10),
    "own process": Engine(("--jobs", "1", *PLUGGED), FOREIGN, SIGNALS + INSIDE, 6),
    "ray": Engine(("--engine", "ray", "--jobs", "2"), BARE, ("KILL", "TERM", "INT group", "worker", "raylet"), 20),
}


@dataclass
class Campaign:
    """One engine's kills, in a folder that each run goes on with until all of its suite is there.

    Attributes:
        undisturbed: the folder of a run that nobody disturbed.
        counts: how often each sort of fault, each way to kill, and each exit code came. faults: what was wrong.
    """

    name: str
    where: Path
    starter: Starter
    undisturbed: Path
    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    slowest: float = 0.0

    def begin(self) -> None:
        """Make an empty folder."""
        shutil.rmtree(self.where, ignore_errors=True)
        (self.where / "tmp").mkdir(parents=True)
        write_suite(self.where, ENGINES[self.name].text)
        (self.where / "mine.py").write_text(PLUGIN)

    @property
    def argv(self) -> tuple[str, ...]:
        """The command."""
        return ("suite", "run", "tiny.toml", "--out", "out", "--quiet", *ENGINES[self.name].words)

    def tried(self, kill: Kill | None) -> None:
        """Start a run, kill it, look at what is left, and note what is wrong with that."""
        self.counts["runs"] += 1
        runs = [Run(self.starter, (kill or Kill("")).start(self.argv, str(self.where)), kill is not None and kill.anew)]
        if kill is not None and kill.beside:
            runs.append(Run(self.starter, Start(self.argv, str(self.where), "beside")))
        try:
            self._try(runs, kill)
        except Fault as fault:
            sort, told = fault.args
            self.counts[sort] += 1
            self.faults.append(f"{sort}: {self.name}, {kill}: {told}")
            for run in runs:
                for pid in run.processes():
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                run.ended()
            self.begin()

    def _try(self, runs: list[Run], kill: Kill | None) -> None:
        out = self.where / "out"
        before, left = contents(out) if out.is_dir() else {}, {*unfinished(self.where)}
        if kill is not None and runs[0].kill(kill, lambda: count(self.where)):
            self.counts.update(["kills", kill.how])
        began = time.monotonic()
        codes = [run.require_end(kill if run is runs[0] else None) for run in runs]
        if len(runs) == 1:
            self.slowest = max(self.slowest, time.monotonic() - began)
        self.counts[f"exit {codes[0]}"] += 1
        self._require_whole(before)
        self._require_swept(runs[0].pid, kill, left)
        if 0 in codes:
            self._require_same()
            self.begin()

    def _require_whole(self, before: dict[str, str]) -> None:
        """All files are whole, and all that was there is there. `before`: its records."""
        if not (self.where / "out").is_dir():
            return
        try:
            assert_whole(self.where, before)
        except (AssertionError, ValueError) as error:
            there = {path.name for path in (self.where / "out" / "records").glob("*.json")}
            sort = "half-written" if before.keys() <= there else "lost"
            raise Fault(sort, f"{type(error).__name__}: {error}"[:1000]) from None

    def _require_swept(self, pid: int, kill: Kill | None, before: set[Path]) -> None:
        """Nothing is left but one unfinished write, and semaphores that nobody was left to remove."""
        more = {*unfinished(self.where)} - before
        logs = self.where / "tmp" / "ray"  # Ray never removes what it logs
        temporary = [
            path for path in (self.where / "tmp").rglob("*") if not (path.is_dir() or path.is_relative_to(logs))
        ]
        if len(more) > 1 or temporary:
            raise Fault("left over", f"{more} {temporary}")
        make_old(self.where)
        semaphores = [*FOLDER.glob(f"sem.loky-{pid}-*")]
        if semaphores and (kill is None or kill.how not in ("KILL group", "tracker")):
            raise Fault("left over", f"{semaphores}")
        for path in semaphores:
            os.utime(path, (time.time() - OLD - 1,) * 2)
        remove_left_semaphores()
        if semaphores := [*FOLDER.glob(f"sem.loky-{pid}-*")]:
            raise Fault("left over", f"{semaphores}, which are old")

    def _require_same(self) -> None:
        """Everything is there as if nobody had disturbed it, and the next run removes what killed ones left."""
        if unfinished(self.where):
            Run(self.starter, Start(self.argv, str(self.where))).require_end(None)
        if left := unfinished(self.where):
            raise Fault("left over", f"{left}, which are old")
        if said(self.where / "out") != said(self.undisturbed):
            raise Fault("other records", "they differ from those of a run that was not disturbed")

    def row(self) -> str:
        """A row of the table."""
        ways = ", ".join(f"{self.counts[way]} {way}" for way in dict.fromkeys(ENGINES[self.name].ways))
        shown = [self.name, str(self.counts["kills"]), *(str(self.counts[sort]) for sort in SORTS)]
        codes = {name: n for name, n in self.counts.items() if name.startswith("exit")}
        return f"| {' | '.join(shown)} | {ways} | the slowest end took {self.slowest:.1f} s; {codes}"


def said(folder: Path) -> dict[str, Any]:
    """What a folder's records say, without what may differ between two runs, and its other files."""
    whole = {
        path.name: path.read_bytes() for path in folder.rglob("*") if path.suffix == ".npz" or path.name == "plan.json"
    }
    return {**contents(folder), **whole}


@pytest.fixture(scope="module")
def starter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Starter]:
    """Where runs are forked from, which has imported what a run of the tiny suite imports."""
    measure(TINY, tmp_path_factory.mktemp("imports"), seeds=[0])
    made = Starter([name for name in sys.modules if name.split(".")[0] in LOADED], {"OMP_NUM_THREADS": "1"})
    yield made
    made.close()


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short name, since the names of Ray's sockets below it have at most 107 bytes."""
    with TemporaryDirectory(prefix="kills") as name:
        yield Path(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", ENGINES)
def test_kills_at_random_moments_harm_nothing(name: str, starter: Starter, folder: Path) -> None:
    if name == "ray" and find_spec("ray") is None:
        pytest.skip('ray is not installed: it is the extra "fedarena[ray]"')
    engine, rng = ENGINES[name], random.Random(f"{SEED} {name}")
    undisturbed = folder / "undisturbed"
    campaign = Campaign(name, folder / "k", starter, undisturbed)
    campaign.begin()
    assert Run(starter, Start(campaign.argv, str(campaign.where))).require_end(None) == 0
    (campaign.where / "out").rename(undisturbed)
    while campaign.counts["kills"] < KILLS:
        if campaign.counts["runs"] % 10 == 0:
            print(campaign.row(), *campaign.faults, sep="\n", flush=True)
        campaign.tried(draw(rng, engine.ways, engine.start_up, 0.0 if name == "ray" else 0.05))
    campaign.tried(None)
    print(campaign.row())
    assert not campaign.faults, "\n\n".join([f"FEDARENA_KILLS_SEED={SEED}", campaign.row(), *campaign.faults])
