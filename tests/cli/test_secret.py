"""A run in which an attack of another package takes part roots in a secret; with --secret it repeats exactly."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.cheats import POINTS
from helpers.plugins import installed
from helpers.suite import READ, stable, write_suite

from fedarena.cli import main
from fedarena.core.errors import UserError
from fedarena.core.rng import SECRET, Rng, is_secret, root
from fedarena.records.command import command_of
from fedarena.records.store import Store
from fedarena.runs.suite.secret import keep_secret, stored_secret

pytestmark = pytest.mark.usefixtures("undrawn", "briefly_alone")

ONE, OTHER = "0123456789abcdef" * 2, "f" * 32
BRIEF = ("--party=server", "--form=paper", "--model=mlp", "--rounds=4", "--jobs=1", "--quiet", "--json")
SUITE = f"""
{READ}
[[matrix]]
problem = "read"
defenses = ["fedavg"]
attacks = ["blind", "last-layer-label"]
parties = ["server"]
forms = ["paper"]
"""


@pytest.fixture(autouse=True)
def _plugins(tmp_path: Path) -> Iterator[None]:
    with installed(tmp_path / "site", POINTS):
        yield


def run(capfd: pytest.CaptureFixture[str], out: Path, *args: str) -> list[Any]:
    capfd.readouterr()
    assert main(["run", "--defense=fedavg", f"--out={out}", *BRIEF, *args]) == 0
    records: list[Any] = json.loads(capfd.readouterr().out)["records"]
    return records


def test_a_record_with_a_secret_repeats_exactly(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    first = run(capfd, tmp_path, "--attack=blind")
    (secret,) = {r["secret"] for r in first}
    assert is_secret(secret)
    again = run(capfd, tmp_path, "--attack=blind", f"--secret={secret}")
    assert [*map(stable, again)] == [*map(stable, first)]
    other = run(capfd, tmp_path, "--attack=blind")
    assert {r["secret"] for r in other} != {secret}
    assert not {r["key"] for r in other} & {r["key"] for r in first}
    assert {len(Store(tmp_path).trial(r["trial"]["key"])) for r in (*first, *other)} == {1}


def test_the_command_of_a_record_has_its_secret(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (record, *_) = [r for r in run(capfd, tmp_path, "--attack=blind") if r["attack"] == "blind"]
    words = shlex.split(command_of(record))
    assert words[words.index("--secret") + 1] == record["secret"]
    repeated = run(capfd, tmp_path / "again", *words[2:])
    assert stable(record) in map(stable, repeated)


def test_without_attacks_of_others_a_run_has_a_secret_only_if_it_is_given(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    plain = run(capfd, tmp_path, "--attack=last-layer-label")
    secret = run(capfd, tmp_path, "--attack=last-layer-label", f"--secret={ONE}")
    assert not any("secret" in r for r in plain)
    assert {r["secret"] for r in secret} == {ONE}
    assert [r["utility"] for r in plain] != [r["utility"] for r in secret]


@pytest.mark.parametrize("text", ["", "abc", ONE.upper(), ONE + "0", " " + ONE])
@pytest.mark.parametrize("command", [("run", "--defense=fedavg", "--attack=dlg"), ("suite", "run", "smoke")])
def test_a_bad_secret_is_refused_in_one_line(
    text: str, command: tuple[str, ...], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main([*command, f"--out={tmp_path / 'out'}", f"--secret={text}"]) == 2
    said = capsys.readouterr().err
    assert said == f"bench: option 'secret' is '{text}', allowed: 32 digits from 0 to 9 and a to f, or none\n"
    assert not (tmp_path / "out").exists()


def test_a_suite_keeps_its_secret(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    suite, out = str(write_suite(tmp_path, SUITE)), tmp_path / "out"
    again = ["suite", "run", suite, "--seeds=0", f"--out={out}", "--jobs=1", "--quiet"]
    assert main(again) == 0
    secret = (out / "secret").read_text().strip()
    files = {path.name: json.loads(path.read_text()) for path in (out / "records").iterdir()}
    assert {r["secret"] for r in files.values()} == {secret}
    lost = next(name for name, r in files.items() if r["attack"] == "blind")
    (out / "records" / lost).unlink()
    (out / "plan.json").unlink()  # as if it had been killed before it was written
    assert main([*again, f"--secret={secret}"]) == 0
    assert "1 trial measured" in capfd.readouterr().out
    assert stable(json.loads((out / "records" / lost).read_text())) == stable(files[lost])
    assert main([*again, f"--secret={OTHER}"]) == 2
    said = capfd.readouterr().err
    assert (
        said == f"bench: option 'secret' is {OTHER}, but {out} has the secret {secret}: give another folder by --out\n"
    )
    assert main(["report", str(out), f"--out={tmp_path / 'report'}"]) == 0
    assert f"bench suite run tiny.toml --seeds 0 --secret {secret}" in (tmp_path / "report" / "README.md").read_text()


def test_of_two_runs_that_begin_together_one_keeps_its_secret(tmp_path: Path) -> None:
    keep_secret(tmp_path, ONE)
    keep_secret(tmp_path, ONE)
    with pytest.raises(UserError, match="has the secret 0123"):
        keep_secret(tmp_path, OTHER)
    assert stored_secret(tmp_path) == ONE
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["secret"]
    (tmp_path / "secret").write_text("half a sec")
    with pytest.raises(UserError, match="holds no secret"):
        stored_secret(tmp_path)


def test_a_stream_under_a_secret_tells_nothing_of_the_streams_beside_it() -> None:
    rng = Rng(root(3, ONE))
    one = rng.child("federation", "aggregate", 4)
    assert one == rng.child("federation").child("aggregate").child(4)
    assert one.seed >= SECRET
    assert one.seed != rng.seed
    assert one.path == ()
    assert one.child("a").integer() != one.child("b").integer()
    assert root(3) == 3
    assert root(3, ONE) != root(4, ONE) != root(3, OTHER)
