"""`bench suite`, as a person meets it: lists, plans, runs, and bad input in one line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.suite import POISON, READ, TINY, write_suite
from joblib.externals.loky import get_reusable_executor

from fedarena.cli import main
from fedarena.core.method_caches import forget_methods

pytestmark = pytest.mark.usefixtures("briefly_alone")

Call = Callable[..., tuple[int, str, str]]

PLUGIN = """
import os
from dataclasses import dataclass
from fedarena.contracts.inference import Inference, Watch
from fedarena.core.card import Card
from fedarena.core.options import NoOptions


class Base(Inference):
    def watch(self, schedule):
        return Watch(first=0, last=1, victims=(0,))


class Deadly(Base):
    def run(self, view, rng, progress):
        os._exit(9)


class Raising(Base):
    def run(self, view, rng, progress):
        raise RuntimeError("out of ideas")


def card(name, target):
    return Card(name=name, kind="attack", title="A toy", target=target, paper="none", authors="nobody", year=2026,
                url="https://example.org", equations="none")


DEADLY, RAISING = card("deadly", Deadly), card("raising", Raising)
"""


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Call:
    """The command, in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def made(*args: str | Path) -> tuple[int, str, str]:
        try:
            code = main([*map(str, args)])
        except SystemExit as stop:
            code = int(stop.code or 0)
        out, err = capsys.readouterr()
        return code, out, err

    return made


@pytest.fixture
def deadly(tmp_path: Path) -> Path:
    """Where a distribution lies whose attacks end their process, or raise."""
    site = tmp_path / "site"
    (site / "deadly_toys-1.dist-info").mkdir(parents=True)
    (site / "deadly_toys.py").write_text(PLUGIN)
    (site / "deadly_toys-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: deadly-toys\nVersion: 1\n")
    entries = "[fedarena.attacks]\ndeadly = deadly_toys:DEADLY\nraising = deadly_toys:RAISING\n"
    (site / "deadly_toys-1.dist-info" / "entry_points.txt").write_text(entries)
    return site


def suite_with(attacks: str, where: Path) -> Path:
    return write_suite(
        where,
        f'{READ}[[matrix]]\nproblem = "read"\ndefenses = ["fedavg"]\nattacks = [{attacks}]\nparties = ["server"]\n',
    )


def test_the_package_s_suites_are_listed_and_each_can_be_read(call: Call) -> None:
    code, out, _ = call("suite", "list", "--json")
    found = json.loads(out)["suites"]
    assert code == 0
    assert {s["name"] for s in found} >= {"smoke", "digits", "iid", "heterogeneous", "graph", "paper"}
    assert all(s["title"] and s["about"] and s["seeds"] and s["problems"] for s in found)
    code, out, _ = call("suite", "list")
    assert code == 0
    assert "smoke" in out


def test_plan_run_and_plan_again(call: Call, tmp_path: Path) -> None:
    suite = write_suite(tmp_path, TINY.replace('"dlg", ', '"dlg", "model-extraction", '))
    code, out, _ = call("suite", "plan", suite, "--quiet", "--seeds=0")
    assert code == 0
    assert not (tmp_path / "runs").exists()
    assert "Tiny (seed 0)" in out
    assert "server, client × both forms" in out
    assert "corrupted (own) × paper" in out
    assert "n/a, expected: the server holds its own model" in out
    assert "not known before some are measured" in out
    code, out, _ = call("suite", "run", suite, "--quiet", "--jobs=1", "--seeds=0", "--json")
    told = json.loads(out)
    assert code == 0
    assert (told["measured"], told["there"], told["refused"], told["lost"]) == (34, 0, 0, {})
    assert set(told["records"]) == {"ok", "n/a"}
    code, out, _ = call("suite", "plan", suite, "--quiet")
    assert "n/a, measured: the server holds its own model" in out
    assert "n/a, expected: the server holds its own model" in out  # on the other seed
    assert "68 trials, 34 of them in runs/tiny. The 34 others may take" in out
    assert "34 of them seen on another seed" in out
    code, out, _ = call("suite", "run", suite, "--quiet", "--jobs=1", "--seeds=0")
    assert (code, out.splitlines()[0].split(" Records")[0]) == (0, "0 trials measured, 34 were there.")
    assert "Records of the suite, one for each reading of a trial: " in out
    code, out, _ = call("suite", "plan", suite, "--quiet", "--seeds=0")
    assert "34 trials, 34 of them in runs/tiny. Nothing is left to do." in out


def test_the_outcome_of_one_trial_is_in_the_singular(call: Call, tmp_path: Path) -> None:
    suite = write_suite(tmp_path, f'{READ}[[matrix]]\nproblem = "read"\ndefenses = ["fedavg"]\n')
    _, out, _ = call("suite", "plan", suite, "--quiet")
    assert "1 trial, 0 of them in runs/tiny. Time for the other one: not known before some are measured." in out
    for told in ("1 trial measured, 0 were there. ", "0 trials measured, 1 was there. "):
        _, out, _ = call("suite", "run", suite, "--quiet", "--jobs=1")
        assert out.startswith(told)


IMPOSSIBLE = {
    "clients": (("clients = 5", "clients = 100000"), "option 'clients' is 100000, but 1438 training samples allow "),
    "model": (("[8]", "[1000000000000]"), "option 'model' is mlp with widths=1000000000000, which does not fit in mem"),
}


@pytest.mark.parametrize("what", IMPOSSIBLE)
def test_a_suite_without_a_trial_that_can_run_is_bad_input(what: str, call: Call, tmp_path: Path) -> None:
    change, why = IMPOSSIBLE[what]
    matrix = '[[matrix]]\nproblem = "poison"\ndefenses = ["fedavg", "median"]\nattacks = ["sign-flip"]\n'
    suite = write_suite(tmp_path, POISON.replace(*change) + matrix)
    message = f"bench: suite tiny: none of its 4 trials can be run: {why}"
    code, out, err = call("suite", "plan", suite, "--quiet")
    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith(message)
    assert f"n/a, cannot be run: {why}" in out
    assert "4 trials, 0 of them in runs/tiny. None of them can be run, for the reasons above." in out
    code, out, err = call("suite", "plan", suite, "--quiet", "--json")
    assert (code, err.count("\n")) == (2, 1)
    assert all(why in t["refused"] for t in json.loads(out)["trials"])
    code, out, err = call("suite", "run", suite, "--quiet", "--jobs=1")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(message)
    assert not (tmp_path / "runs").exists()


def test_several_reasons_why_nothing_can_be_run_are_counted(call: Call, tmp_path: Path) -> None:
    text = POISON.replace("clients = 5", "clients = 100000") + READ.replace("batch_size = 1", "batch_size = 1000")
    text += '[[matrix]]\nproblem = "poison"\ndefenses = ["fedavg"]\n'
    text += '[[matrix]]\nproblem = "read"\ndefenses = ["fedavg"]\n'
    code, _, err = call("suite", "run", write_suite(tmp_path, text), "--quiet", "--jobs=1")
    assert (code, err.count("\n")) == (2, 1)
    assert "allow 1 to 1438 clients (and 1 other reason: see bench suite plan)" in err


def test_pairs_that_cannot_run_are_reported_and_stop_nothing(call: Call, tmp_path: Path) -> None:
    text = POISON.replace("corrupted = 1", "corrupted = 2")
    text += '[[matrix]]\nproblem = "poison"\ndefenses = ["fedavg", "bulyan"]\nattacks = ["sign-flip"]\n'
    suite = write_suite(tmp_path, text)
    code, out, _ = call("suite", "plan", suite, "--quiet", "--json")
    trials = json.loads(out)["trials"]
    refused = {t["defense"]: t["refused"] for t in trials if t["refused"]}
    assert code == 0
    assert set(refused) == {"bulyan"}
    code, out, _ = call("suite", "run", suite, "--quiet", "--jobs=1")
    assert code == 0
    assert f"2 trials cannot be run: see bench suite plan {suite}" in " ".join(out.split())
    assert "2 trials measured" in out
    code, out, _ = call("suite", "plan", suite, "--quiet")
    assert code == 0
    assert "4 trials, 2 of them in runs/tiny. 2 cannot be run; nothing else is left to do." in " ".join(out.split())


def test_an_attack_that_raises_is_a_failed_record_and_code_1(
    call: Call, tmp_path: Path, deadly: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = suite_with('"raising", "last-layer-label"', tmp_path)
    monkeypatch.syspath_prepend(str(deadly))
    forget_methods()
    code, out, err = call("suite", "run", suite, "--jobs=1", "--quiet", "--out=out")
    forget_methods()
    assert (code, err) == (1, "")
    assert "failed: RuntimeError: out of ideas (in run, deadly_toys.py:" in " ".join(out.split())
    assert "3 trials measured" in out
    assert "2 failed" in out  # in the first rounds, and in the others


def test_an_attack_that_kills_its_process_fails_and_no_other(
    call: Call, tmp_path: Path, deadly: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has a process of its own, so that no worker dies; tests of the engine are of workers that do."""
    suite = suite_with('"deadly", "last-layer-label", "gradient-estimate"', tmp_path)
    monkeypatch.syspath_prepend(str(deadly))
    get_reusable_executor().shutdown(kill_workers=True)  # workers of earlier tests do not know the toys
    forget_methods()
    code, out, err = call("suite", "run", suite, "--jobs=2", "--quiet", "--out=out")
    forget_methods()
    get_reusable_executor().shutdown(kill_workers=True)  # its workers know the toys
    assert (code, err) == (1, ""), out + err
    out = " ".join(out.split())
    assert "failed: its process ended" in out
    assert "4 trials measured" in out
    assert "2 failed" in out


MATRIX = '[[matrix]]\nproblem = "read"\ndefenses = ["fedavg"]\nattacks = ["dlg"]\n'

BAD = {
    "not TOML": ("a = = 1", "is not TOML: "),
    "empty": ("", r"has no \[\[matrix\]\]: nothing would be run"),
    "unknown key": (f"sedes = [1]\n{READ}{MATRIX}", "has an unknown key 'sedes'; did you mean seeds?"),
    "unknown table key": (f"{READ}clents = 2\n{MATRIX}", r"problems\.read has an unknown key 'clents'"),
    "one matrix": (f"{READ}{MATRIX.replace('[[matrix]]', '[matrix]')}", r"each begun with \[\[matrix\]\]"),
    "no defenses": (f"{READ}{MATRIX.replace('defenses', 'forms')}", "forms has 'fedavg', allowed: paper, adaptive"),
    "empty list": (READ + MATRIX.replace('["fedavg"]', "[]"), "matrix 1 names no defenses"),
    "twice": (READ + MATRIX.replace('["dlg"]', '["dlg", "dlg"]'), "attacks names something twice"),
    "unknown problem": (MATRIX, "problem is 'read', allowed: none is described"),
    "odd problem": (READ + MATRIX.replace('"read"', '["read"]'), r"problem is \['read'\], allowed: read"),
    "unknown defense": (READ + MATRIX.replace("fedavg", "fedavgg"), "unknown defense 'fedavgg'; did you mean fedavg?"),
    "unknown attack": (READ + MATRIX.replace("dlg", "dgl"), "unknown attack 'dgl'; did you mean dlg"),
    "unknown option": (f"{READ}{MATRIX}[methods.dlg]\nvictim = 1\n", "has no option 'victim'; did you mean victims?"),
    "bad option": (f"{READ}{MATRIX}[methods.dlg]\nvictims = 0\n", "option 'victims' is 0"),
    "idle method": (
        f"{READ}{MATRIX}[methods.idlg]\nvictims = 1\n",
        r"\[methods.idlg\] is of no method that takes part",
    ),
    "idle training": (f"{READ}{MATRIX}[training.dlg]\nlr = 1\n", r"\[training.dlg\] is of no protocol that takes part"),
    "idle parties": (f'{READ}{MATRIX}parties = ["outsider"]\n', "parties is outsider, of which dlg has none: it has"),
    "unknown party": (f'{READ}{MATRIX}parties = ["sever"]\n', "parties has 'sever', allowed: server, client"),
    "date": (f"{READ}{MATRIX}[methods.dlg]\nvictims = 2020-01-01\n", r"methods\.dlg\.victims is datetime"),
    "seeds": (f"seeds = [1, 1]\n{READ}{MATRIX}", r"seeds is \[1, 1\], allowed: distinct integers from 0"),
    "large seeds": (
        f"seeds = [0, 9007199254740992]\n{READ}{MATRIX}",
        r"seeds is \[0, 9007199254740992\], allowed: distinct integers from 0 to 9007199254740991",
    ),
    "no seeds": (f"seeds = []\n{READ}{MATRIX}", r"seeds is \[\], allowed: distinct integers from 0"),
    "minutes": (f"minutes = nan\n{READ}{MATRIX}", "minutes is nan, allowed: a number above 0"),
    "title": (f"title = 3\n{READ}{MATRIX}", "title is 3, allowed: text"),
    "no dataset": (READ.replace('dataset = "digits"', "") + MATRIX, r"problems\.read names no dataset"),
    "unknown dataset": (READ.replace("digits", "digit") + MATRIX, "unknown dataset 'digit'; did you mean digits"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_file_is_refused_in_one_line(what: str, call: Call, tmp_path: Path) -> None:
    text, message = BAD[what]
    code, out, err = call("suite", "run", write_suite(tmp_path, text), "--quiet", "--jobs=1")
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert re.search(message, err), err
    assert not (tmp_path / "runs").exists()


OPTIONS = {
    "unknown suite": (("smok",), r"unknown suite 'smok'; did you mean smoke\? \(or give the path of a .toml file\)"),
    "no file": (("nowhere.toml",), "there is no suite file nowhere.toml"),
    "no text": (("odd.toml",), "odd.toml is not TOML: it is no text in UTF-8"),
    "no jobs": (("tiny.toml", "--jobs=0"), "option 'jobs' is 0, allowed: 1 or more"),
    "jobs": (("tiny.toml", "--jobs=two"), "option 'jobs' is 'two', allowed: an integer, 1 or more"),
    "seeds": (("tiny.toml", "--seeds=1,1"), "option 'seeds' is '1,1', allowed: distinct integers"),
    "large seeds": (("tiny.toml", "--seeds=9007199254740992"), "option 'seeds' has 9007199254740992, allowed: 0 to"),
    "address": (
        ("tiny.toml", "--address=auto"),
        "option 'address' is given, but the engine is local: add --engine ray",
    ),
    "engine": (("tiny.toml", "--engine=dask"), "invalid choice: 'dask'"),
    "out": (("tiny.toml", "--out=tiny.toml"), "option 'out' is tiny.toml, which is not a folder"),
    "data": (("tiny.toml", "--data-dir=none"), "option 'data-dir' is none, which is not a folder"),
}


@pytest.mark.parametrize("what", OPTIONS)
def test_a_bad_option_is_refused_in_one_line(what: str, call: Call, tmp_path: Path) -> None:
    write_suite(tmp_path)
    (tmp_path / "odd.toml").write_bytes(b"\xff\xfe")
    args, message = OPTIONS[what]
    code, out, err = call("suite", "run", *args, "--quiet")
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert re.search(message, err), err


def test_an_address_without_a_cluster_is_refused_at_once(call: Call, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason='ray is not installed: it is the extra "fedarena[ray]"')
    suite = write_suite(tmp_path)
    code, out, err = call("suite", "run", suite, "--quiet", "--engine=ray", "--address=127.0.0.1:1")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("bench: option 'address' is '127.0.0.1:1', where no Ray cluster answers (")
