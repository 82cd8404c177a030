"""`bench reproduce` resumes; `--all` gathers the papers' numbers and measures what is missing."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from helpers import toy_table

from fedarena.cli import main
from fedarena.cli.reproduce_all import read_minutes
from fedarena.core.errors import UserError
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.page import measuring
from fedarena.reproduce.page.parts import GUESS, PUBLISHED, PartKey, path_of, save_guess
from fedarena.reproduce.progress import Progress

TABLE = toy_table.NAME
Reproduce = Callable[..., tuple[int, str]]


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[[], list[str]]]:
    """The toy's table and no other, in a folder of its own; gives the parts that were begun, and forgets them."""
    monkeypatch.setenv("TOY_LOG", str(tmp_path / "log"))
    monkeypatch.chdir(tmp_path)

    def read() -> list[str]:
        log = tmp_path / "log"
        lines = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return lines

    with toy_table.alone():
        yield read


@pytest.fixture
def reproduce(begun: object, capsys: pytest.CaptureFixture[str]) -> Reproduce:
    """Run `bench reproduce …` in this process; gives the exit code and stdout."""

    def call(*words: str) -> tuple[int, str]:
        code = main(["reproduce", *words, "--quiet"])
        return code, capsys.readouterr().out

    return call


def verdicts(out: str) -> list[str]:
    return [line["verdict"] for line in json.loads(out)["numbers"]]


def test_a_table_goes_on_where_it_stopped(reproduce: Reproduce, begun: Callable[[], list[str]]) -> None:
    one = ("--jobs=1",)
    assert reproduce(TABLE, "--only=red", *one)[0] == 0
    assert begun() == ["red, one 0", "red, two 0"]
    code, out = reproduce(TABLE, "--seeds=0,1", *one)
    assert code == 0
    assert begun() == ["red, one 1", "red, two 1", "blue, three 0", "blue, three 1"]
    assert "2 of 6 parts were there already; --fresh measures them again" in out
    assert "[0.5, 0.505]" in out  # the printed table is that of all six
    again = reproduce(TABLE, "--seeds=0,1", "--json", *one)[1]
    assert begun() == []
    assert json.loads(again)["rows"] == json.loads(Path("runs/dbcl-toy.json").read_text())["rows"]
    assert reproduce(TABLE, "--only=blue", "--fresh", *one)[0] == 0
    assert begun() == ["blue, three 0"]


def test_the_result_of_a_table_says_what_its_parts_took(reproduce: Reproduce) -> None:
    result = json.loads(reproduce(TABLE, "--seeds=1", "--json", "--jobs=1")[1])
    assert [row["seed"] for row in result["rows"]] == [1, 1, 1]
    assert [(p["piece"], p["seed"]) for p in result["parts"]] == [(piece, 1) for piece in toy_table.TABLE.pieces]
    assert all(p["cpu_seconds"] >= 0 and p["fedarena"] and "commit" in p for p in result["parts"])
    assert not any("cpu_seconds" in row for row in result["rows"])


def test_gathering_measures_nothing(reproduce: Reproduce, begun: Callable[[], list[str]]) -> None:
    code, out = reproduce("--all")
    assert code == 0
    assert begun() == []
    assert "3 parts are missing; how long they take is not known." in out
    assert "Written to reports/reproduction/README.md" in out
    page = Path("reports/reproduction/README.md").read_text()
    assert "| all | 0 | 0 |  |  |  |  |  | 3 |  |" in page
    assert not Path("reports/reproduction/numbers.png").exists()
    reproduce(TABLE, "--only=red", "--jobs=1")
    code, out = reproduce("--all", "--report=elsewhere", "--json")
    assert verdicts(out) == ["held", "held", "not measured"]
    first = json.loads(out)["numbers"][0]
    assert {name: first[name] for name in ("spread", "standard_error", "cause", "shown_by")} == {
        "spread": None,
        "standard_error": None,
        "cause": "",
        "shown_by": "",
    }
    assert "| all | 2 | 2 (100%) |  |  |  |  |  | 1 |  |" in Path("elsewhere/README.md").read_text()
    assert "| red, one | 0.50 |" in Path("elsewhere/dbcl.md").read_text()
    assert Path("elsewhere/numbers.png").is_file()
    assert [one["piece"] for one in json.loads(out)["missing"]] == ["blue, three"]


def test_measuring_takes_what_is_missing_and_no_more(reproduce: Reproduce, begun: Callable[[], list[str]]) -> None:
    reproduce(TABLE, "--only=red, two", "--jobs=1")
    begun()
    code, out = reproduce("--all", "--measure", "--jobs=1", "--json")
    assert code == 0
    assert begun() == ["red, one 0", "blue, three 0"]  # the first has a known time, the other none
    assert verdicts(out) == ["held"] * 3
    assert reproduce("--all", "--measure", "--jobs=1")[0] == 0
    assert begun() == []
    reproduce("--all", "--measure", "--jobs=1", "--seeds=1", "--only=dbcl/toy: blue")
    assert begun() == ["blue, three 1"]
    reproduce("--all", "--measure", "--jobs=1", "--fresh", "--only=dbcl/toy: blue")
    assert begun() == ["blue, three 0", "blue, three 1"]


def test_what_the_page_was_made_of_stands_beside_it_and_is_not_lost(
    reproduce: Reproduce, begun: Callable[[], list[str]]
) -> None:
    reproduce("--all", "--measure", "--jobs=1")
    shutil.rmtree("runs")
    begun()
    verdicts_of = verdicts(reproduce("--all", "--json")[1])
    reproduce("--all", "--only=dbcl/toy: red", "--seeds=7")  # a page of less
    assert verdicts(reproduce("--all", "--measure", "--jobs=1", "--json")[1]) == verdicts_of == ["held"] * 3
    assert begun() == []
    reproduce("--all", "--measure", "--jobs=1", "--fresh", "--only=dbcl/toy: blue")
    assert begun() == ["blue, three 0"]
    assert len((Path("reports/reproduction") / PUBLISHED).read_text().splitlines()) == 3


def test_two_processes_give_what_one_gives(begun: Callable[[], list[str]], tmp_path: Path) -> None:
    """In a fresh interpreter, since workers read the table of tables anew."""
    code = f"""
import sys
from fedarena.reproduce.tables import TABLES
from fedarena.reproduce.page.measuring import measure
from fedarena.reproduce.page.parts import PartKey
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.progress import Progress
TABLES[{TABLE!r}] = "helpers.toy_table"
asked = [PartKey({TABLE!r}, piece, seed) for piece in ("red, one", "blue, three") for seed in (0, 1)]
told = []
for jobs in (1, 2):
    done = dict(measure(asked, Machine(), jobs, lambda share, text: told.append(share)))
    print([done[i].rows for i in range(4)])
assert told[-1] == 1.0
"""
    done = subprocess.run([sys.executable, "-c", code], env=environment(tmp_path), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    one, two = done.stdout.splitlines()
    assert one == two
    assert "0.705" in one


def environment(folder: Path, **more: str) -> dict[str, str]:
    here = str(Path(toy_table.__file__).parents[1])
    search = os.pathsep.join(p for p in (here, os.environ.get("PYTHONPATH", "")) if p)
    return {**os.environ, "PYTHONPATH": search, "TOY_LOG": str(folder / "log"), **more}


def test_a_killed_measurement_loses_the_part_in_flight_and_no_other(
    reproduce: Reproduce, begun: Callable[[], list[str]], tmp_path: Path
) -> None:
    words = ["reproduce", "--all", "--measure", "--jobs=1", "--quiet"]
    code = f"""
import sys
from fedarena.reproduce.tables import TABLES
TABLES.clear()
TABLES[{TABLE!r}] = "helpers.toy_table"
from fedarena.cli import main
sys.exit(main({words!r}))
"""
    killed = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment(tmp_path, TOY_HANGS="red, two"),
        stdout=subprocess.DEVNULL,
    )
    log = tmp_path / "log"
    while not (log.exists() and "red, two 0" in log.read_text()):
        assert killed.poll() is None
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert begun() == ["red, one 0", "red, two 0"]
    assert path_of(tmp_path / "runs", PartKey(TABLE, "red, one", 0)).is_file()
    assert not path_of(tmp_path / "runs", PartKey(TABLE, "red, two", 0)).exists()
    code_, out = reproduce("--all", "--measure", "--jobs=1", "--json")
    assert code_ == 0
    assert begun() == ["red, two 0", "blue, three 0"]
    assert verdicts(out) == ["held"] * 3


def test_when_time_is_over_the_part_in_flight_is_given_up(
    reproduce: Reproduce, begun: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOY_HANGS", "red, two")
    reproduce(TABLE, "--only=red, one", "--jobs=1")
    begun()
    code, out = reproduce("--all", "--measure", "--within=0.005", "--jobs=1", "--json")
    assert code == 0
    assert "blue, three 0" not in begun()
    assert verdicts(out) == ["held", "not measured", "not measured"]


def test_a_table_that_goes_on_where_methods_fail_is_given_up_too(
    begun: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it takes for a failure would be kept as its result, and counted as measured."""

    def rows(piece: str, machine: Machine, seed: int, progress: Progress) -> list[dict[str, Any]]:
        try:
            while True:
                progress(0.5, piece)
        except Exception as error:
            return [{"accuracy": None, "note": str(error)}]

    monkeypatch.setattr(toy_table, "TABLE", replace(toy_table.TABLE, rows=rows))
    asked = [PartKey(TABLE, "red, one", 0)]
    ((place, found),) = measuring.measure(asked, Machine(), 1, lambda share, text: None, until=time.time() + 0.2)
    assert place == 0
    assert isinstance(found, float)


def test_what_was_given_up_is_not_begun_again_in_less_time_than_it_takes(
    reproduce: Reproduce, begun: Callable[[], list[str]]
) -> None:
    guess = path_of(Path("runs"), PartKey(TABLE, "red, two", 0)).with_suffix(GUESS)
    save_guess(Path("runs"), PartKey(TABLE, "red, two", 0), 3600.0)
    reproduce("--all", "--measure", "--within=30", "--jobs=1", "--only=dbcl/toy: red, two")
    assert begun() == []
    assert "(expected CPU time: 60 min)" in Path("reports/reproduction/dbcl.md").read_text()
    reproduce("--all", "--measure", "--jobs=1", "--only=dbcl/toy: red, two")
    assert begun() == ["red, two 0"]
    assert not guess.exists()


def test_progress_tells_how_long_a_part_would_have_taken(
    begun: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half done when time is over, after 10 s: 20 s."""
    clock = iter([0.0, 0.0, 0.0, 99.0])
    cpu = iter([5.0, 15.0])
    monkeypatch.setattr(measuring, "time", SimpleNamespace(time=lambda: next(clock), process_time=lambda: next(cpu)))
    table = replace(toy_table.TABLE, rows=lambda piece, machine, seed, progress: [progress(0.5, ""), progress(0.5, "")])
    monkeypatch.setattr(toy_table, "TABLE", table)
    asked = [PartKey(TABLE, "red, one", 0)]
    assert list(measuring.measure(asked, Machine(), 1, lambda share, text: None, until=9.0)) == [(0, 20.0)]


def test_parts_that_are_known_to_take_longer_are_not_begun(
    reproduce: Reproduce, begun: Callable[[], list[str]]
) -> None:
    reproduce(TABLE, "--only=red, one", "--jobs=1")
    begun()
    path = path_of(Path("runs"), PartKey(TABLE, "red, one", 0))
    path.write_text(json.dumps(json.loads(path.read_text()) | {"cpu_seconds": 3600.0}))
    code, out = reproduce("--all", "--measure", "--within=30", "--jobs=1", "--json")
    assert code == 0
    assert begun() == ["blue, three 0"]
    (left,) = json.loads(out)["missing"]
    assert (left["piece"], left["expected_cpu_seconds"]) == ("red, two", pytest.approx(3600.0))


def test_what_goes_wrong_is_told_and_the_rest_is_measured(
    reproduce: Reproduce, begun: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOY_FAILS", "red, one")
    code, out = reproduce("--all", "--measure", "--jobs=1")
    assert code == 1
    assert "dbcl/toy: red, one, seed 0: the toy is broken" in out
    assert "- red, one; the toy is broken: 0.50\n" in Path("reports/reproduction/dbcl.md").read_text()
    assert len(begun()) == 3
    assert main(["reproduce", TABLE, "--jobs=1", "--quiet"]) == 1  # of one table, too: the rest of it is shown
    assert main(["reproduce", TABLE, "--jobs=1", "--quiet", "--only=red, one"]) == 2  # of which there is no rest


def test_a_result_that_is_no_number_is_told(
    reproduce: Reproduce, begun: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def rows(piece: str, *args: Any) -> list[dict[str, Any]]:
        return [{"accuracy": float("nan")}] if piece == "red, one" else [{"accuracy": 0.6}]

    monkeypatch.setattr(toy_table, "TABLE", replace(toy_table.TABLE, rows=rows))
    code, out = reproduce("--all", "--measure", "--jobs=1", "--json")
    assert code == 1
    assert verdicts(out)[:2] == ["not measured", "held"]


def test_a_damaged_part_is_one_line_and_is_measured_again(reproduce: Reproduce, begun: Callable[[], list[str]]) -> None:
    reproduce("--all", "--measure", "--jobs=1")
    begun()
    bad = path_of(Path("runs"), PartKey(TABLE, "red, two", 0))
    bad.write_text(bad.read_text()[:40])
    code, out = reproduce("--all")
    assert code == 0
    assert f"{bad} is damaged" in out
    reproduce("--all", "--measure", "--jobs=1", "--json")
    assert begun() == []  # it stands beside the page
    (Path("reports/reproduction") / PUBLISHED).unlink()
    code, out = reproduce("--all", "--measure", "--jobs=1", "--json")
    assert begun() == ["red, two 0"]
    assert (verdicts(out), json.loads(out)["complaints"]) == (["held"] * 3, [])


BAD = {
    "neither": ((), "name a table or give --all"),
    "both": ((TABLE, "--all"), "give a table ('dbcl/toy') or --all, not both"),
    "unknown": (("dbcl/toi",), "unknown table 'dbcl/toi'; did you mean dbcl/toy"),
    "measure": ((TABLE, "--measure"), "option 'measure' belongs to --all"),
    "within": ((TABLE, "--within=5"), "option 'within' belongs to --all"),
    "report": ((TABLE, "--report=x"), "option 'report' belongs to --all"),
    "within alone": (("--all", "--within=5"), "option 'within' belongs to --all --measure"),
    "fresh alone": (("--all", "--fresh"), "option 'fresh' belongs to --all --measure"),
    "jobs alone": (("--all", "--jobs=2"), "option 'jobs' belongs to --all --measure"),
    "data alone": (("--all", "--data-dir=."), "option 'data-dir' belongs to --all --measure"),
    "only": (("--all", "--only=nothing"), "option 'only' is 'nothing'"),
    "only of a table": ((TABLE, "--only=green"), "option 'only' is 'green', allowed: how one of these begins"),
    "seeds": (("--all", "--seeds=a"), "option 'seeds' is 'a'"),
    "minutes": (("--all", "--measure", "--within=0"), "option 'within' is '0', allowed: minutes, more than 0"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line(case: str, begun: Callable[[], list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    words, told = BAD[case]
    assert main(["reproduce", *words]) == 2
    err = capsys.readouterr().err
    assert told in err
    assert len(err.splitlines()) == 1
    assert begun() == []


def test_folders_that_cannot_be_written_are_told_before_the_work(
    begun: Callable[[], list[str]], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    for words in (("--report=file/page",), ("--out=file/runs",)):
        assert main(["reproduce", "--all", "--measure", "--quiet", "--jobs=1", *words]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert "file" in line
    assert begun() == []


@pytest.mark.parametrize("text", ["-1", "nan", "inf", "soon", ""])
def test_minutes_are_more_than_none(text: str) -> None:
    with pytest.raises(UserError, match="more than 0"):
        read_minutes(text)
    assert read_minutes("1.5") == 1.5


def test_a_part_keeps_its_device_and_a_count_stays_on_the_cpu(
    monkeypatch: pytest.MonkeyPatch, begun: Callable[[], list[str]]
) -> None:
    asked = [PartKey(TABLE, "red, one", 0)]
    machine = Machine(device="cuda")
    ((_, part),) = measuring.measure(asked, machine, 1, lambda share, text: None)
    assert part.device == "cuda"
    monkeypatch.setattr(toy_table, "TABLE", replace(toy_table.TABLE, cpu_only="it counts toys"))
    ((_, part),) = measuring.measure(asked, machine, 1, lambda share, text: None)
    assert part.device == "cpu"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["baffle/table4"], "option 'device' is cuda, allowed for baffle/table4: cpu: it counts bytes"),
        (["pbpfl/table3"], "allowed for pbpfl/table3: cpu: it counts CPU time"),
        (["--all"], "option 'device' belongs to --all --measure"),
    ],
)
def test_a_device_that_would_do_nothing_is_refused(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("fedarena.core.tensors._repeatable", lambda: None)  # of this process from then on
    assert main(["reproduce", *words, "--device=cuda"]) == 2
    assert said in capsys.readouterr().err


def test_a_device_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("it is there")
    assert main(["reproduce", "baffle/table1", "--device=cuda", f"--out={tmp_path}"]) == 2
    assert "no usable CUDA device" in capsys.readouterr().err
