"""`bench run`, `explain` and bad input, as a person meets them."""

from __future__ import annotations

import json
import os
import resource
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from helpers.plugins import installed

from fedarena.cli import main
from fedarena.records.store import load_pictures as load_pictures

pytestmark = pytest.mark.usefixtures("undrawn", "few_trees")

QUICK = [
    "--rounds=6",
    "--jobs=1",
    "--quiet",
    *("--set", "attack.iterations=10", "--set", "attack.restarts=1", "--set", "attack.victims=1"),
    *("--set", "attack.window=4"),
]


def bench(*args: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    try:
        code = main(args)
    except SystemExit as stop:  # argparse
        code = int(stop.code or 0)
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.usefixtures("drawn")
def test_a_run_prints_the_table_and_writes_what_it_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = bench("run", "--defense=dbcl", "--attack=dlg", f"--out={tmp_path}", *QUICK, capsys=capsys)
    assert code == 0
    for text in ("no defense", "paper form", "adaptive form", "server", "client", "eavesdropper", "Verdict."):
        assert text in out
    records = [json.loads(p.read_text()) for p in (tmp_path / "records").glob("*.json")]
    assert {(r["defense"], r["party"], r["form"]) for r in records} == {
        *((d, p, "adaptive") for d in ("dbcl", "fedavg") for p in ("server", "client", "eavesdropper")),
        *(("dbcl", p, "paper") for p in ("server", "client", "eavesdropper")),
    }
    assert (tmp_path / "dbcl-dlg-digits.png").read_bytes().startswith(b"\x89PNG")


UNLOADABLE = """
from fedarena.core.card import Card

def load(data_dir=None):
    raise ImportError("libfoo.so is missing")

CARD = Card(name="unloadable", kind="dataset", title="It needs what is not here", target=load)
"""


@pytest.mark.parametrize("command", [("run", "--defense=krum", "--attack=sign-flip"), ("explain", "krum", "sign-flip")])
def test_a_package_s_data_set_that_cannot_be_read_is_one_line(
    tmp_path: Path, command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with installed(tmp_path, {"datasets": {"unloadable": "unloadable:CARD"}}) as place:
        (place / "unloadable.py").write_text(UNLOADABLE)
        given = (*command, "--dataset=unloadable", "--model=mlp", "--clients=4", "--corrupted=1")
        code, out, err = bench(*given, capsys=capsys)
    assert (code, out) == (1, "")
    assert err == "bench: a method failed: ImportError: libfoo.so is missing (in load, unloadable.py:5)\n"


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the size of the process is not told here")
def test_a_round_that_does_not_fit_in_memory_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The model fits, and what five clients send does not."""
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (taken + 2**30, before[1]))
    try:
        options = ("--model=mlp", "--clients=5", "--corrupted=2", "--set", "model.widths=6000,6000", *QUICK[:3])
        given = ("run", "--defense=fedavg", "--attack=sign-flip", *options, f"--out={tmp_path}")
        code, out, err = bench(*given, capsys=capsys)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("bench: it does not fit in memory: RuntimeError: ")


def test_json_is_all_there_is_on_stdout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = ("--party=server", "--form=paper", "--seeds=0,3", "--set", "defense.ratio=0.25", "--json")
    code, out, _ = bench("run", "--defense=dbcl", "--attack=dlg", f"--out={tmp_path}", *args, *QUICK, capsys=capsys)
    assert code == 0
    records = json.loads(out)["records"]
    mine = [r for r in records if r["defense"] == "dbcl"]
    assert [(r["party"], r["form"], r["seed"]) for r in mine] == [("server", "paper", 0), ("server", "paper", 3)]
    assert mine[0]["options"]["defense"]["ratio"] == 0.25
    for r in records:
        assert r["utility"]["fedavg_accuracy"] == next(
            p["utility"]["clean_accuracy"] for p in records if p["defense"] == "fedavg" and p["seed"] == r["seed"]
        )


@pytest.mark.parametrize(("forms", "plain"), [("paper", ["paper"]), ("paper,adaptive", ["paper", "adaptive"])])
def test_an_attack_that_is_another_in_each_form_is_compared_with_its_own(
    forms: str, plain: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = ("--rounds=8", "--set", "attack.rounds=6", "--set", "model.widths=16", "--set", "attack.round_batches=4")
    few = few if "adaptive" in forms else few[:5]
    args = (*PROPERTY, "--party=server", f"--form={forms}", f"--out={tmp_path}", "--jobs=1", "--quiet", "--json", *few)
    code, out, err = bench(*args, capsys=capsys)
    assert code == 0, err
    records = json.loads(out)["records"]
    assert [r["form"] for r in records if r["defense"] == "fedavg"] == plain


RUN = ("run", "--defense=dbcl", "--attack=dlg")
PROPERTY = ("run", "--defense=dbcl", "--attack=property-inference")
GEIPING = ("run", "--defense=fedavg", "--attack=inverting-gradients")

BAD = {
    "unknown defense": (("run", "--defense=dbcll", "--attack=dlg"), "unknown defense 'dbcll'; did you mean dbcl"),
    "unknown attack": (("run", "--defense=dbcl", "--attack=dgl"), "unknown attack 'dgl'; did you mean dlg or "),
    "a method by another name": (
        ("run", "--defense=dbcl", "--attack=lira"),
        "'lira'; did you mean membership-inference?",
    ),
    "show by another name": (("show", "mi-face"), "unknown method 'mi-face'; did you mean model-inversion?"),
    "unknown dataset": ((*RUN, "--dataset=mnits"), "unknown dataset 'mnits'; did you mean mnist"),
    "unknown model": ((*RUN, "--model=lenet-dgl"), "unknown model 'lenet-dgl'; did you mean lenet-dlg"),
    "unknown partition": ((*RUN, "--partition=idd"), "unknown partition 'idd'; did you mean iid?"),
    "unknown party": ((*RUN, "--party=sever"), "'party' is 'sever', allowed: server, client, eavesdropper"),
    "unknown form": ((*RUN, "--form=papr"), "'form' is 'papr', allowed: paper, adaptive"),
    "no such option": ((*RUN, "--set", "defense.ration=1"), "no option 'ration'; did you mean ratio?"),
    "no such group": ((*RUN, "--set", "defence.ratio=1"), "group 'defence'; did you mean defense?"),
    "not a setting": ((*RUN, "--set", "ratio"), "'ratio', which is not GROUP.OPTION=VALUE"),
    "does not parse": ((*RUN, "--set", "defense.ratio=half"), "'ratio' is 'half', allowed: number in (0, 1]"),
    "ratio zero": ((*RUN, "--set", "defense.ratio=0"), "'ratio' is 0.0, allowed: number in (0, 1]"),
    "ratio above one": ((*RUN, "--set", "defense.ratio=1.5"), "'ratio' is 1.5, allowed: number in (0, 1]"),
    "ratio not a number": ((*RUN, "--set", "defense.ratio=nan"), "'ratio' is nan"),
    "no rounds": ((*RUN, "--rounds=0"), "'rounds' is 0"),
    "a flag against --set": (
        (*RUN, "--rounds=2", "--set", "training.rounds=0"),
        "option 'rounds' is 2, and option 'set' gives training.rounds as 0, allowed: one of them",
    ),
    "a flag of two words against --set": (
        (*RUN, "--set", "training.batch-size=4", "--batch-size=8"),
        "option 'batch-size' is 8, and option 'set' gives training.batch_size as 4, allowed: one of them",
    ),
    "a line break": ((*RUN, "--clients=\n"), "option 'clients' is '␊', allowed: an integer, 1 or more"),
    "an escape sequence": ((*RUN, "--clients=\x1b[2J"), "option 'clients' is '␛[2J', allowed: an integer"),
    "as many clients as there are numbers": (
        (*RUN, "--clients=9223372036854775807"),
        "option 'clients' is 9223372036854775807, allowed: 1 to 1000000",
    ),
    "rounds do not parse": ((*RUN, "--rounds=many"), "'rounds' is 'many', allowed: integer in [1, inf)"),
    "no clients": ((*RUN, "--clients=0"), "'clients' is 0, allowed: 1 or more"),
    "too many clients": ((*RUN, "--clients=99999"), "99999"),
    "participation": ((*RUN, "--participation=1.5"), "'participation' is 1.5"),
    "batch too large": ((*RUN, "--batch-size=720"), "'batch-size' is 720, but client 0 holds only 719 samples"),
    "seeds": ((*RUN, "--seeds=0,0"), "'seeds' is '0,0'"),
    "a seed too large": (
        (*RUN, "--seeds=0,99999999999999999999999"),
        "option 'seeds' has 99999999999999999999999, allowed: 0 to 9007199254740991",
    ),
    "jobs": ((*RUN, "--jobs=0"), "'jobs' is 0"),
    "data folder": ((*RUN, "--data-dir=/no/such/folder"), "'data-dir' is /no/such/folder, which is not a folder"),
    "model too large for the data": ((*RUN, "--model=cnn-mnist"), "cnn-mnist"),
    "start after the end": ((*RUN, "--rounds=5", "--set", "attack.start=9"), "'start' is 9"),
    "no weight to lower": (
        (
            "run",
            "--defense=fedavg",
            "--attack=idlg",
            "--rounds=5",
            "--set",
            "attack.decades=2",
            "--set",
            "attack.prior=none",
        ),
        "attack idlg: option 'decades' is 2, allowed: 0 without a weight 'tv' or 'unlikely' to lower",
    ),
    "a weight of a law that nobody has": (
        (
            "run",
            "--defense=fedavg",
            "--attack=idlg",
            "--rounds=5",
            "--set",
            "attack.unlikely=2",
            "--set",
            "attack.prior=none",
        ),
        "attack idlg: option 'unlikely' is 2.0, allowed with prior=none: 0.001, because it does nothing there; "
        "it acts with prior=population",
    ),
    "data without attributes": (
        ("run", "--defense=fedavg", "--attack=property-inference", "--dataset=breast-cancer"),
        "option 'dataset' is breast-cancer, whose samples have no attributes beside their class, allowed with property "
        "inference: digits, lfw, utkface",
    ),
    "variation of rows": (
        ("run", "--defense=fedavg", "--attack=dlg", "--dataset=breast-cancer", "--set", "attack.tv=1"),
        "attack dlg: option 'tv' is 1.0, allowed: 0 for inputs of shape (30,)",
    ),
    "blocks larger than an image": (
        ("run", "--defense=fedavg", "--attack=model-inversion", "--set", "attack.block=100"),
        "attack model-inversion: option 'block' is 100, allowed for images of 8 x 8: 1 to 8",
    ),
    "queries for who holds the parameters": (
        ("run", "--defense=fedavg", "--attack=model-inversion", "--party=server,client", "--set", "attack.block=2"),
        "attack model-inversion: option 'block' is 2, allowed with party server, client: 1, because it acts "
        "for party outsider alone",
    ),
    "a classifier of the adaptive form": (
        (*PROPERTY, "--form=paper", "--set", "attack.classifier=ridge"),
        "attack property-inference: option 'classifier' is ridge, allowed with form paper: best, because it acts "
        "in form adaptive alone",
    ),
    "batches for a classifier of the adaptive form": (
        (*PROPERTY, "--form=paper", "--set", "attack.round_batches=4"),
        "attack property-inference: option 'round_batches' is 4, allowed with form paper: 32, because it acts "
        "in form adaptive alone",
    ),
    "features that a ridge does not read": (
        (*PROPERTY, "--form=adaptive", "--set", "attack.classifier=ridge", "--set", "attack.features=code"),
        "attack property-inference: option 'features' is code, allowed with classifier=ridge: best, because it does "
        "nothing there; it acts with classifier other than ridge",
    ),
    "no such attribute": (
        (*PROPERTY, "--set", "attack.property=nope"),
        "option 'property' is 'nope', allowed with digits: bold",
    ),
    "kinks of a smooth model": (
        (*GEIPING, "--model=lenet-dlg", "--set", "attack.kinks=1"),
        "attack inverting-gradients: option 'kinks' is 1, allowed: 0 for a model without ReLU and max pooling",
    ),
    "colours of no variation": (
        (*GEIPING, "--set", "attack.colours=true", "--set", "attack.tv=0"),
        "attack inverting-gradients: option 'colours' is true, allowed with tv=0.0: false, because it does nothing "
        "there; it acts with tv other than 0.0",
    ),
    "no images to invert": (
        ("run", "--defense=fedavg", "--attack=model-inversion", "--dataset=diabetes"),
        "option 'dataset' is diabetes, whose inputs have shape (10,), allowed with inversions",
    ),
    "no such flag": (
        (*RUN, "--roundz=5"),
        "unrecognized arguments: --roundz=5; did you mean --rounds? (see `bench run --help`)",
    ),
    "no flag of a subcommand": (
        ("suite", "run", "smoke", "--job", "2"),
        "unrecognized arguments: --job 2; did you mean --jobs? (see `bench suite run --help`)",
    ),
    "a setting as a flag": ((*RUN, "--lr", "-1"), "--lr -1; it is --set training.lr=VALUE (see"),
    "a word too many": ((*RUN, "more"), "unrecognized arguments: more (see"),
    "an abbreviated flag": ((*RUN, "--round=5"), "unrecognized arguments: --round=5"),
    "device": ((*RUN, "--device=tpu"), "argument --device: invalid choice: 'tpu'"),
    "nothing to run": (("run", "--attack=dlg"), "the following arguments are required: --defense"),
    "nothing to sketch": ((*RUN, "--model=mlp", "--set", "model.widths="), "no layer but the output"),
    "unknown table": (("reproduce", "dbcl/table9"), "unknown table 'dbcl/table9'; did you mean dbcl/table1"),
    "unknown method": (("show", "dbc"), "unknown method 'dbc'; did you mean dbcl"),
    "explain": (("explain", "dbcl", "dgl"), "unknown attack 'dgl'"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_clear_line(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args, said = BAD[case]
    extra = (f"--out={tmp_path}",) if args[0] == "run" else ()
    code, out, err = bench(*args, *extra, capsys=capsys)
    assert code == 2
    assert said in err
    assert err.startswith("bench: ")
    assert err.count("\n") == 1
    assert out == ""
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", ["damaged", "wrong shape", "missing key"])
def test_damaged_data_is_one_clear_line(content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, rng = tmp_path / "mnist.npz", np.random.default_rng(0)
    x, y = rng.integers(0, 256, (50, 28, 28), dtype=np.uint8), rng.integers(0, 10, 50)
    if content == "damaged":
        np.savez(path, x_train=x, y_train=y, x_test=x, y_test=y)
        path.write_bytes(path.read_bytes()[:-500])
    elif content == "wrong shape":
        np.savez(path, x_train=x[:, :14], y_train=y, x_test=x, y_test=y)
    else:
        np.savez(path, x_train=x, y_train=y)
    out = tmp_path / "out"
    args = ("--dataset=mnist", f"--data-dir={tmp_path}", f"--out={out}")
    code, _, err = bench(*RUN, *args, capsys=capsys)
    assert code == 2
    assert "mnist.npz" in err
    assert err.count("\n") == 1


def test_absent_data_says_where_to_put_which_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FEDARENA_DATA", raising=False)
    monkeypatch.setenv("FEDARENA_CACHE", str(tmp_path))
    code, _, err = bench(*RUN, "--dataset=kmnist", f"--out={tmp_path / 'o'}", capsys=capsys)
    assert code == 2
    assert "kmnist.npz" in err
    assert "bench data fetch kmnist" in err
    assert err.count("\n") == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    locked = tmp_path / "locked"
    locked.mkdir()
    locked.chmod(stat.S_IRUSR | stat.S_IXUSR)
    code, _, err = bench(*RUN, f"--out={locked / 'runs'}", capsys=capsys)
    assert code == 2
    assert "'out'" in err


def test_a_file_where_the_folder_should_be_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "runs").write_text("I am a file")
    code, _, err = bench(*RUN, f"--out={tmp_path / 'runs'}", *QUICK, capsys=capsys)
    assert code == 2
    assert "option 'out' is" in err
    assert "cannot be written" in err
    assert err.count("\n") == 1


def test_explain_says_of_how_many_rounds_a_short_run_asks(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = bench("explain", "dbcl", "property-inference", "--rounds=6", capsys=capsys)
    assert code == 0, err
    told = " ".join(out.replace("│", " ").split())
    assert "decides for each of 5 rounds whether" in told


def test_explain_says_what_crosses_and_who_sees_it(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = bench("explain", "dbcl", "dlg", "--json", capsys=capsys)
    assert code == 0
    told = json.loads(out)
    seed = next(row for row in told["wires"] if row["tensor"] == "seed")
    assert (seed["wire"], seed["bytes"]) == ("down", 4)
    assert told["bytes"]["down"] == told["bytes"]["up"] + 4
    sees = {(p["party"], p["form"]): p["sees"] for p in told["parties"]}
    assert "every upload" not in sees["client", "adaptive"]
    assert "W and the round's secrets" in sees["server", "paper"]
    assert "W and the round's secrets" not in sees["eavesdropper", "paper"]
    code, out, _ = bench("explain", "fedavg", "dlg", capsys=capsys)
    assert code == 0
    assert "who sees what" in out


def test_a_killed_run_leaves_the_pictures_of_every_record(tmp_path: Path) -> None:
    args = ("run", "--defense=fedavg", "--attack=analytic", "--seeds=0,1,2,3", f"--out={tmp_path}", *QUICK[:3])
    run = subprocess.Popen([sys.executable, "-m", "fedarena", *args], stdout=subprocess.DEVNULL)
    until = time.monotonic() + 240
    while not list(tmp_path.glob("records/*.json")) and time.monotonic() < until:
        assert run.poll() is None
        time.sleep(0.005)
    run.send_signal(signal.SIGKILL)
    run.wait()
    records = [json.loads(path.read_text()) for path in tmp_path.glob("records/*.json")]
    assert records
    for record in records:
        assert (load_pictures(tmp_path, record["key"]) is not None) is (record["status"] == "ok")


def test_python_m_is_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "fedarena", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("fedarena ")
