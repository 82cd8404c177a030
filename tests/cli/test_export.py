"""`bench export` where it cannot do what it is asked for."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from helpers.fresh_python import run_python

import fedarena as fa
from fedarena.cli import main
from fedarena.cli.export import TARGETS

LIBRARIES = {"parquet": "pyarrow", "mlflow": "mlflow", "wandb": "wandb"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    fa.run("median", "sign-flip", out=folder, clients=5, corrupted=1, rounds=2, jobs=1)
    return folder


@pytest.mark.parametrize("target", list(LIBRARIES))
def test_a_missing_library_is_named_with_its_extra(
    target: str, runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if find_spec(LIBRARIES[target]) is not None:
        pytest.skip(f"{LIBRARIES[target]} is installed")
    assert main(["export", str(runs), "--to", target, "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert f"--to {target} needs the package {LIBRARIES[target]}" in error
    assert f"pip install 'fedarena[{target}]'" in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere", "--to", "csv"], "there are no records in"),
        (["nowhere", "--to", "excel"], "argument --to: invalid choice: 'excel'"),
        (["nowhere"], "the following arguments are required: --to"),
    ],
)
def test_bad_input_is_one_line(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["export", *words]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_the_help_lists_the_targets_and_loads_none_of_them(tmp_path: Path) -> None:
    code = "import sys; from fedarena.cli import main\ntry: main(['export', '--help'])\nexcept SystemExit: pass\n"
    done = run_python(code + "print(sorted(set(sys.modules) & {'pandas', 'mlflow', 'wandb', 'pyarrow'}))", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert ",".join(TARGETS) in done.stdout
    assert done.stdout.endswith("[]\n")
