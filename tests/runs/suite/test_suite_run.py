"""Running a suite: the same records however it is run, nothing twice, and one clear line for what is wrong."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers.suite import (
    BARE,
    PROPERTY,
    TINY,
    contents,
    measure,
    planned,
    records_in,
    stable,
    start,
    unused,
    without_pictures,
    write_suite,
)

from fedarena.core.errors import UserError
from fedarena.federation.spec import Training
from fedarena.records.schema import Record
from fedarena.records.store import STALE, Store
from fedarena.records.trial_locks import TrialLocks
from fedarena.records.upgrade import READABLE
from fedarena.runs import engine
from fedarena.runs.engine import Events
from fedarena.runs.executors import InProcess
from fedarena.runs.suite.run import run_suite
from fedarena.runs.suite.trials import Trial, trials_of
from fedarena.runs.trial import given_by, training_of


def alone(trial: Trial, known: dict[Training, Record]) -> list[str]:
    """A trial's records, when nothing else reads its run."""
    made: list[Record] = []
    engine.run([trial.spec], InProcess(), Events(finished=lambda i, k, records, galleries: made.extend(records)), known)
    return sorted(stable(r) for r in made)


def assert_same_alone(text: str, out: Path, where: Path) -> int:
    """Hold a suite's trials to themselves run alone; how many had company."""
    suite, plan = planned(text, where)
    store, trials = Store(out), {t.name: t for t in trials_of(suite, plan.seeds)}
    first = [t for t in plan.trials if t.seed == 0]
    together = {t.key: store.trial(t.key) for t in first}
    known: dict[Training, Record] = {}
    for t in first:
        known |= dict.fromkeys(given_by(trials[t.name].spec), together[t.key][0])
    runs = [training_of(trials[t.name].spec) for t in first]
    for t in first:
        assert alone(trials[t.name], known) == sorted(stable(r) for r in together[t.key]), t.name
    return sum(runs.count(run) > 1 for run in runs)


def test_trials_that_share_a_run_are_what_they_are_alone(tiny: Path, tmp_path: Path) -> None:
    """Honest runs with a probe among them."""
    assert assert_same_alone(TINY, tiny, tmp_path) >= 18


def test_an_experiment_that_says_what_clients_work_on_shares_with_nobody(tmp_path: Path) -> None:
    measure(PROPERTY, tmp_path)
    assert assert_same_alone(PROPERTY, tmp_path / "out", tmp_path) > 0


def test_two_workers_give_the_records_of_one(tiny: Path, tmp_path: Path) -> None:
    assert measure(TINY, tmp_path, jobs=2).lost == {}
    assert contents(tmp_path / "out") == contents(tiny)


def test_the_second_run_does_nothing(tiny: Path, tmp_path: Path) -> None:
    suite, plan = planned(TINY, tmp_path)
    outcome = run_suite(suite, plan, tiny, None, unused)
    assert (outcome.done, outcome.there, outcome.lost, outcome.refused) == (0, 56, {}, 0)


def test_the_second_run_loads_no_method(tiny: Path, tmp_path: Path) -> None:
    suite = write_suite(tmp_path)
    code = (
        "import sys; from fedarena.cli import main; code = main(sys.argv[1:]);"
        "print([m for m in ('torch', 'scipy', 'sklearn', 'joblib', 'ray') if m in sys.modules]); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "suite", "run", str(suite), "--out", str(tiny)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "0 trials measured, 56 were there" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"


def test_fresh_measures_everything_anew(tiny: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny, tmp_path / "out")
    before = {p.name: p.stat().st_mtime_ns for p in (tmp_path / "out" / "records").iterdir()}
    outcome = measure(TINY, tmp_path, fresh=True, seeds=(0,))
    assert (outcome.done, outcome.there) == (28, 0)
    after = {p.name: p.stat().st_mtime_ns for p in (tmp_path / "out" / "records").iterdir()}
    seeds = {name: record["seed"] for name, record in records_in(tmp_path / "out").items()}
    assert {name for name in after if after[name] != before[name]} == {name for name in seeds if seeds[name] == 0}
    assert contents(tmp_path / "out") == contents(tiny)


def test_only_what_is_missing_is_measured(tiny: Path, tmp_path: Path) -> None:
    """Also where the run that it is measured against is there, and where a trial lacks one of its readings."""
    shutil.copytree(tiny, tmp_path / "out")
    records = records_in(tmp_path / "out")
    poisoned = next(name for name, r in records.items() if r["attack"] == "sign-flip" and r["defense"] == "dbcl")
    read = next(name for name, r in records.items() if r["trial"]["records"] > 1)
    honest = next(name for name, r in records.items() if r["attack"] == "none" and r["defense"] == "fedavg")
    for name in (poisoned, read, honest):
        (tmp_path / "out" / "records" / name).unlink()
    assert measure(TINY, tmp_path).done == 3
    assert contents(tmp_path / "out") == contents(tiny)


DAMAGE = {
    "empty": lambda record: "",
    "cut off": lambda record: json.dumps(record)[:200],
    "no text": lambda record: b"\xff\xfe\x00",
    "another thing": lambda record: "[1, 2]",
    "a number": lambda record: "3",
    "changed": lambda record: json.dumps({**record, "seed": 17}),
    "lacks what was measured": lambda record: json.dumps({k: v for k, v in record.items() if k != "metrics"}),
    "lacks its trial": lambda record: json.dumps({k: v for k, v in record.items() if k != "trial"}),
    "odd trial": lambda record: json.dumps({**record, "trial": {"key": "a", "records": None}}),
    "without a sum": lambda record: json.dumps({k: v for k, v in record.items() if k != "sum"}),
    "of another schema": lambda record: json.dumps({**record, "schema": min(READABLE) - 1}),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_record_is_told_of_and_measured_again(damage: str, tiny: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny, tmp_path / "out")
    records = records_in(tmp_path / "out")
    name = next(name for name, r in records.items() if r["attack"] == "sign-flip")
    made = DAMAGE[damage](records[name])
    path = tmp_path / "out" / "records" / name
    path.write_bytes(made.encode() if isinstance(made, str) else made)
    (note,) = Store(tmp_path / "out").notes()
    if damage in ("of another schema", "without a sum"):
        assert note == "1 record of another schema, written by another version: ignored"
    else:
        assert note.startswith(f"damaged records are ignored: records/{name} (")
        assert "\n" not in note
    warned: list[str] = []
    assert measure(TINY, tmp_path, warn=warned.append).done == 1
    assert warned == [f"{note}; what the suite needs of them is measured again"]
    assert Store(tmp_path / "out").notes() == []
    assert contents(tmp_path / "out") == contents(tiny)


def test_a_renamed_record_counts_for_nothing(tiny: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny, tmp_path / "out")
    folder = tmp_path / "out" / "records"
    path = next(iter(sorted(folder.glob("*.json"))))
    path.rename(folder / "renamed.json")
    (note,) = Store(tmp_path / "out").notes()
    assert note == "damaged records are ignored: records/renamed.json (its name is not that of its content)"
    assert measure(TINY, tmp_path).done == 1
    assert path.is_file()


def test_a_full_disk_is_one_line_and_harms_nothing(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sync, written = os.fsync, []

    def full(descriptor: int) -> None:
        if len(written) == 12:
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(descriptor)
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match=r"^cannot write .*: No space left on device$"):
        measure(TINY, tmp_path)
    monkeypatch.undo()
    files = [p.name for p in (tmp_path / "out").rglob("*") if p.is_file()]
    assert len(files) == 13  # what was written, and the file of claims: nothing that was begun
    assert contents(tmp_path / "out").items() <= contents(tiny).items()
    assert measure(TINY, tmp_path).lost == {}
    assert contents(tmp_path / "out") == contents(tiny)


def test_litter_of_killed_runs_goes_and_what_is_being_written_stays(tiny: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny, tmp_path / "out")
    stale = [tmp_path / "out" / ".plan.json.abcd1234", tmp_path / "out" / "records" / ".00ff.json.ab_d12x4"]
    others = [
        tmp_path / "out" / "records" / ".11ff.json.abcd1234",
        tmp_path / "out" / ".mine",
        tmp_path / "out" / "a.b",
    ]
    for path in (*stale, *others):
        path.write_text("")
    for path in (*stale, *others[1:]):
        os.utime(path, (path.stat().st_mtime - STALE - 60,) * 2)
    measure(TINY, tmp_path)
    assert not [path for path in stale if path.exists()]
    assert [path for path in others if path.exists()] == others


@pytest.mark.parametrize("where", ["out", "out/records"])
def test_a_folder_that_cannot_be_is_refused_before_anything_runs(where: str, tmp_path: Path) -> None:
    suite, plan = planned(TINY, tmp_path)
    (tmp_path / where).parent.mkdir(exist_ok=True)
    (tmp_path / where).write_text("in the way")
    with pytest.raises(UserError, match=rf"option 'out' is .*{where}, which cannot be written \(.*\)"):
        run_suite(suite, plan, tmp_path / "out", None, unused)


def test_two_runs_at_once_share_the_work(tiny: Path, tmp_path: Path) -> None:
    suite = write_suite(tmp_path, BARE)
    runs = [start("suite", "run", suite, "--out=out", "--jobs=1", "--quiet", "--json", cwd=tmp_path) for _ in "ab"]
    told = [run.communicate() for run in runs]
    assert [run.returncode for run in runs] == [0, 0], told
    outcomes = [json.loads(out) for out, _ in told]
    assert contents(tmp_path / "out") == without_pictures(tiny)
    assert [o["measured"] + o["there"] for o in outcomes] == [44, 44]
    # What both find unclaimed at the same moment is claimed by one: nothing is measured twice.
    assert sum(o["measured"] for o in outcomes) == 44


def test_claims_are_exclusive_and_end_with_their_process(tmp_path: Path) -> None:
    keys = ["00" * 10, "ff" * 10]
    code = (
        "import sys, pathlib; from fedarena.records.trial_locks import TrialLocks;"
        "c = TrialLocks(pathlib.Path(sys.argv[1]));"
        "print(c.take(sys.argv[2:]), flush=True); sys.stdin.read()"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path), keys[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert other.stdout is not None
    assert other.stdout.readline() == "True\n"
    mine = TrialLocks(tmp_path)
    assert not mine.take(keys)
    assert mine.take(keys[:1])
    other.kill()
    other.communicate()
    assert mine.take(keys)
    mine.close()
    assert (tmp_path / ".claims").stat().st_size == 0


def test_an_error_in_training_loses_its_trials_and_no_other(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unexpected error, and bad input found out late."""
    honest = engine.prepare_together

    def breaking(specs: Any, progress: Any) -> Any:
        if specs[0].problem.corrupted and specs[0].defense.name == "dbcl" and specs[0].seed == 1:
            if specs[0].attack is None:
                raise UserError("seed 1 leaves a client without data")
            raise ZeroDivisionError("by nothing")
        return honest(specs, progress)

    monkeypatch.setattr(engine, "prepare_together", breaking)
    outcome = measure(TINY, tmp_path)
    # Poisoned runs wait for the honest ones that they are measured against.
    assert set(outcome.lost.values()) == {
        "seed 1 leaves a client without data",
        "the run that it is measured against is not there",
    }
    assert len(outcome.lost) == 4
    lost = {name for name, r in records_in(tiny).items() if (r["defense"], r["seed"]) == ("dbcl", 1)}
    lost = {name for name in lost if records_in(tiny)[name]["problem"]["corrupted"]}
    assert contents(tmp_path / "out") == {n: r for n, r in contents(tiny).items() if n not in lost}
    monkeypatch.undo()
    assert measure(TINY, tmp_path).done == 4

    def raising(specs: Any, progress: Any) -> Any:
        if specs[0].attack is not None and specs[0].attack.name == "sign-flip":
            raise ZeroDivisionError("by nothing")
        return honest(specs, progress)

    monkeypatch.setattr(engine, "prepare_together", raising)
    outcome = measure(TINY, tmp_path, fresh=True, seeds=(0,))
    assert set(outcome.lost.values()) == {
        "ZeroDivisionError: by nothing (in raising, test_suite_run.py:"
        + (str(raising.__code__.co_firstlineno + 2) + ")")
    }
    assert (outcome.done, len(outcome.lost)) == (26, 2)
